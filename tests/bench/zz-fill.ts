import { readFile } from 'node:fs/promises';
import { connectNats, startServer, findServer, ensureStreams } from '@coxswain/adapter-nats';
import { sessionRef, subjects } from '@coxswain/protocol';
const N = Number(process.env.N ?? 100000);
const { NATS_URL: _, ...env } = process.env;
const found = await findServer({ env });
const server = await startServer({ binary: (found as any).path, stateDir: '/tmp/listing/state', syncAlways: false, stopTimeoutMs: 120000 });
const nc = await connectNats({ servers: server.url, token: server.token, name: 'fill' });
await ensureStreams(nc);
const lines = (await readFile('tests/traces/approval-for-good.jsonl', 'utf8')).split('\n').filter(Boolean);
const last = lines.at(-1)!;
const { session_id } = JSON.parse(last);
console.log('record bytes', last.length, JSON.parse(last).state);
const t = Date.now();
for (let i = 0; i < N; i++) {
  const id = `idle-${String(i).padStart(6,'0')}`;
  nc.publish(subjects.journal(sessionRef(id)), last.replaceAll(session_id, id).replace(/"n":\d+/, '"n":1'));
  if (i % 2000 === 0) await nc.flush();
}
await nc.flush();
console.log('filled', Date.now() - t);
await new Promise((r) => setTimeout(r, 3000));
const u = new URL(server.url); 
await (await import('node:fs/promises')).writeFile('/tmp/listing/url', server.url.replace('://', `://${server.token}@`));
await (await import('node:fs/promises')).writeFile('/tmp/listing/pid', String(server.pid));
console.log('up', server.url, server.pid);
process.on('SIGTERM', async () => { await nc.close(); await server.stop(); process.exit(0); });
setInterval(() => {}, 1000);
