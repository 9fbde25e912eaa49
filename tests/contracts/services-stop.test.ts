/** Services whose server is gone: their stop fails, and leaves no connection and no failure behind. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNats, endOnce, endTogether, ensureStreams } from '@coxswain/adapter-nats';
import { startHooksService, startToolService } from '@coxswain/hooks';
import { startPersonaService } from '@coxswain/personas';
import { DEFAULT_TENANT, subjects, type WorkOrder, type WorkReport, type WorkRequest } from '@coxswain/protocol';
import { createInbox } from '@nats-io/nats-core';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { serverStartBoundMs, startTestServer } from './test-server.ts';

test('each step of a shutdown runs once, also after one that fails', async () => {
  const ran: string[] = [];
  const failing = (text: string) => async () => {
    ran.push(text);
    throw new Error(text);
  };
  const later = new Promise<void>((resolve) => setImmediate(resolve)).then(() => void ran.push('later'));
  const stop = endOnce(
    failing('one'),
    () => endTogether([failing('two')(), later]),
    () => ran.push('three'),
  );
  await expect(stop()).rejects.toThrow('one');
  await expect(stop()).rejects.toThrow('one');
  expect(ran).toEqual(['one', 'two', 'later', 'three']);
});

/** A server with its streams, and a folder for the files of a service. */
async function ground() {
  const server = await startTestServer();
  const folder = await mkdtemp(join(tmpdir(), 'cox-stop-'));
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await server.stop();
    isStopped = true;
  };
  onTestFinished(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });
  const nats = { servers: server.url, token: server.token };
  const nc = await connectNats(nats);
  onTestFinished(() => nc.close());
  await ensureStreams(nc);
  return { folder, nc, stop, options: { nats, stateDir: folder, log: 'file', metrics: null } as const };
}

const TOOL = `{ name: 'kept', description: '', inputSchema: { type: 'object' }, execute: () => 'done' }`;

test('a service whose stop fails closes its connection', { timeout: serverStartBoundMs }, async () => {
  const { folder, stop, options } = await ground();
  await writeFile(join(folder, 'tools.mjs'), `export default ${TOOL};`);
  await writeFile(join(folder, 'hooks.mjs'), `export default { PreToolUse: () => undefined };`);
  const services = {
    tools: await startToolService({ ...options, file: join(folder, 'tools.mjs') }),
    hooks: await startHooksService({ ...options, file: join(folder, 'hooks.mjs') }),
    personas: await startPersonaService({ ...options, personas: [{ definition: { name: 'one' }, folder }] }),
  };
  await stop();
  for (const [kind, service] of Object.entries(services)) {
    await expect(service.stop(), kind).rejects.toMatchObject({ code: 'nats_unreachable' });
    await expect(service.ping(), kind).rejects.toThrow('closed');
  }
});

test('a removed tool whose stop fails does not end its service', { timeout: serverStartBoundMs }, async () => {
  const { folder, nc, stop, options } = await ground();
  const [file, gate] = [join(folder, 'tools.mjs'), join(folder, 'gate')];
  const removed = `{ ...kept, name: 'removed', async execute() { while (!existsSync('${gate}')) await setTimeout(10); } }`;
  const write = (tools: string) =>
    writeFile(
      file,
      `import { existsSync } from 'node:fs'; import { setTimeout } from 'node:timers/promises';
       const kept = ${TOOL}; export default [${tools}];`,
    );
  await write(`kept, ${removed}`);
  const service = await startToolService({ ...options, file });
  onTestFinished(() => service.stop().catch(() => undefined));
  // A host sends a call, and orders its start.
  const inbox = createInbox();
  const about = { v: 1, key: 'default.one.1-0', session_id: 'one', epoch: 1 } as const;
  const requests = subjects.tool(DEFAULT_TENANT, 'removed');
  let isRunning = false;
  nc.subscribe(inbox, {
    callback(_, message) {
      const report = message.json<WorkReport>();
      isRunning ||= report.type === 'running';
      const order: WorkOrder = { ...about, want: 'start', hold: 1 };
      if (report.type === 'ready') nc.publish(subjects.orders(requests), JSON.stringify(order), { reply: inbox });
    },
  });
  const request: WorkRequest = { ...about, call_id: 'c', hold: 1, args: {} };
  nc.publish(requests, JSON.stringify(request), { reply: inbox });
  await eventually('the call runs', () => isRunning);
  await write('kept');
  await eventually('the tool is removed', () => service.tools.length === 1);
  await stop();
  await writeFile(gate, '');
  const log = () => readFile(join(folder, 'tools.log'), 'utf8');
  // A rejection without a handler would fail this file.
  await eventually('the failed stop is logged', async () => (await log()).includes('did not stop in order'));
  expect(service.tools).toEqual(['kept']);
});
