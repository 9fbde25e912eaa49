// Reproduces damaged S2 blocks with three bare nats-servers. See nats-server-s2-blocks.md.
//   npm install @nats-io/transport-node && node nats-server-s2-blocks.mjs PATH/TO/nats-server [s2|none]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';

const [binary = 'nats-server', compression = 's2'] = process.argv.slice(2);
// Many streams: whether a block is damaged depends on the order of two goroutines.
const STREAMS = Array.from({ length: 16 }, (_, i) => `S${i}`);
const folder = mkdtempSync(join(tmpdir(), 's2-blocks-'));
const nodes = [1, 2, 3].map((n) => ({ name: `n${n}`, client: 14220 + n, route: 16220 + n, http: 18220 + n }));
const routes = JSON.stringify(nodes.map(({ route }) => `nats-route://127.0.0.1:${route}`));

for (const node of nodes) {
  node.config = join(folder, `${node.name}.conf`);
  const store = JSON.stringify(join(folder, node.name));
  const lines = [
    `server_name: ${node.name}`,
    `listen: "127.0.0.1:${node.client}"`,
    `http: "127.0.0.1:${node.http}"`,
    `jetstream { store_dir: ${store}, sync_interval: always }`,
    `cluster { name: c, listen: "127.0.0.1:${node.route}", routes: ${routes} }`,
  ];
  writeFileSync(node.config, lines.join('\n'));
}

const start = async () => {
  for (const node of nodes) {
    if (node.child) continue;
    node.child = spawn(binary, ['-c', node.config], { stdio: 'ignore' });
  }
  for (const { http } of nodes) {
    const isHealthy = async () => (await fetch(`http://127.0.0.1:${http}/healthz`).catch(() => null))?.ok;
    while (!(await isHealthy())) await sleep(100);
  }
};
const end = (signal) =>
  Promise.all(
    nodes.map(async (node) => {
      node.child.kill(signal);
      await once(node.child, 'exit');
      node.child = null;
    }),
  );

await start();
const nc = await connect({ servers: nodes.map(({ client }) => `127.0.0.1:${client}`), maxReconnectAttempts: -1 });
const ask = async (subject, body) => {
  for (;;) {
    try {
      const answer = (await nc.request(subject, body, { timeout: 3000 })).json();
      if (!answer.error) return answer;
      if (answer.error.code !== 503) throw new RangeError(answer.error.description);
    } catch (error) {
      if (error instanceof RangeError) throw error;
    }
    await sleep(200);
  }
};
let published = 0;
const publish = async (count) => {
  for (const end = published + count; published < end; published++)
    await Promise.all(STREAMS.map((name) => ask(`${name}.x`, `${'message '.repeat(25)}${published}`)));
};

for (const name of STREAMS) {
  const config = { name, subjects: [`${name}.>`], storage: 'file', num_replicas: 3, allow_direct: true, compression };
  await ask(`$JS.API.STREAM.CREATE.${name}`, JSON.stringify(config));
}
await publish(5);
// An orderly end installs a Raft snapshot: the kill below makes the servers go back to it.
await end('SIGTERM');
await start();
await publish(5);
await end('SIGKILL');
await start();
await publish(10);
await end('SIGTERM');
await start();

// Only the leader answers STREAM.MSG.GET, so each server leads each stream in turn. (Direct gets go to any replica.)
const leaderOf = async (stream) => (await ask(`$JS.API.STREAM.INFO.${stream}`)).cluster.leader;
for (const { name } of nodes) {
  let readable = 0;
  for (const stream of STREAMS) {
    while ((await leaderOf(stream)) !== name) {
      const request = JSON.stringify({ placement: { preferred: name } });
      await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, request).catch(() => null);
      await sleep(200);
    }
    for (let seq = 1; seq <= published; seq++) {
      const answer = await nc.request(`$JS.API.STREAM.MSG.GET.${stream}`, JSON.stringify({ seq }), { timeout: 5000 });
      if (answer.json().message) readable++;
    }
    if ((await leaderOf(stream)) !== name) throw new Error(`${name} no longer leads ${stream}: run this again`);
  }
  process.stdout.write(`${compression}: ${name} reads ${readable} of ${published * STREAMS.length} messages\n`);
}
await nc.close();
await end('SIGTERM');
process.stdout.write(`stores: ${folder}\n`);
