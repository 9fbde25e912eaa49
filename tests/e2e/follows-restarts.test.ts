/** Whoever follows a session when its server is killed and comes back goes on at once, and misses nothing. */
import { findServer, startServer } from '@coxswain/adapter-embedded-server';
import { connect } from '@coxswain/client';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

/** Shorter than the time after which a follower that has lost its place asks by itself. */
const SOON_MS = 20_000;

afterAll(removeScratch);

test.each([
  ['the newest', 'newest'],
  ['the first', 1],
] as const)('from %s record on', async (_what, from) => {
  const found = await findServer({ env: {} });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const stateDir = await scratchFolder('bus');
  const token = 'of-this-test-alone-and-not-secret';
  const first = await startServer({ binary: found.path, stateDir, token });
  const natsUrl = first.url.replace('nats://', `nats://${token}@`);
  const host = await startHost({ natsUrl, stateDir });
  const client = await connect({ servers: natsUrl });
  const leaving = new AbortController();
  onTestFinished(async () => {
    leaving.abort();
    await client.close();
    await host.kill();
  });
  const model = await scripted([{ text: 'said' }], { loop: true });
  const session = await client.startSession({ prompt: 'go', model }, { wait: 'accepted' });
  await session.result();
  const seen: { readonly n: number }[] = [];
  const connections: boolean[] = [];
  const following = (async () => {
    for await (const { record, connected } of session.records({ deltas: true, from, signal: leaving.signal }))
      if (record) seen.push(record);
      else if (connected !== undefined) connections.push(connected);
  })();
  await until('the newest record', async () => seen.at(-1)?.n === (await session.lastNumber()));
  process.kill(first.pid, 'SIGKILL');
  await first.exited;
  const second = await startServer({ binary: found.path, stateDir, token, port: first.port });
  onTestFinished(() => second.stop());
  for (let run = 2; run <= 3; run++) {
    const { receipt } = await session.prompt('again', { wait: 'accepted' });
    await session.result({ after: receipt?.n ?? 0 });
  }
  const newest = await session.lastNumber();
  await until(`record ${newest}; so far ${seen.map(({ n }) => n)}`, () => seen.at(-1)?.n === newest, SOON_MS);
  expect(seen.map(({ n }) => n)).toEqual(seen.map((_, i) => (seen[0]?.n ?? 0) + i));
  expect([connections[0], connections.at(-1)]).toEqual([false, true]);
  leaving.abort();
  await following;
});
