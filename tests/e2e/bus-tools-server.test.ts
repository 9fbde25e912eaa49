/** The server is killed and started again while a bus tool works on a call. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { findServer } from '@coxswain/adapter-embedded-server';
import { connect } from '@coxswain/client';
import { afterAll, expect, test } from 'vitest';
import { anything, calls, done, waiting } from './kit/called-tools.ts';
import { Child, COX_MAIN, SESSIONS_MAIN } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { toolModule } from './kit/tool-service.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';
import { until } from './kit/until.ts';

const ending: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ending.reverse()) await end();
  await removeScratch();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A server on a port of its own, in a folder that outlives it. */
async function startServer(port: number, folder: string): Promise<ChildProcess> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const args = ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder];
  return spawn(found.path, args, { stdio: 'ignore' });
}

async function killed(server: ChildProcess): Promise<void> {
  const gone = once(server, 'exit');
  server.kill('SIGKILL');
  await gone;
}

test('the call goes on where it runs, its result is asked for and comes once, and the tool is announced still', async () => {
  const [port, folder] = [await freePort(), await scratchFolder('server')];
  const servers = `nats://127.0.0.1:${port}`;
  let server = await startServer(port, folder);
  ending.push(() => killed(server));
  const host = new Child(SESSIONS_MAIN, [], { env: { ...TRUSTED_BUS, NATS_URL: servers, COX_STATE_DIR: folder } });
  ending.push(() => host.kill());
  await host.says('session host is up');
  const module = await toolModule(
    `defineTool({ name: 'far', description: 'A tool.', ${anything}, ${waiting('came')} })`,
  );
  const worker = new Child(COX_MAIN, ['serve', 'tools', module.file, '--nats', servers, '--json']);
  ending.push(() => worker.kill());
  await host.says(/"tool":"far".*a tool is announced/);

  const client = await connect({ servers });
  ending.push(() => client.close());
  const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
  const model = await scripted([calls('far'), calls('far'), done]);
  const session = await client.startSession({ prompt: 'Go.', model, permissions }, { wait: 'accepted' });
  await until('the call runs', async () => (await module.log()).length === 1);
  await killed(server);
  // It ends while nobody can hear it.
  await module.open();
  await until('the call has ended', async () => (await module.log()).length === 2);
  server = await startServer(port, folder);
  // What was open when it died may take its time; a person asks anew.
  const reader = await until('the server to answer', () => connect({ servers }).catch(() => null));
  ending.push(() => reader.close());
  await until('the journal to be readable', () =>
    reader
      .session(session.id)
      .state()
      .catch(() => null),
  );
  const ended: string[] = [];
  for await (const { events } of reader.session(session.id).records()) {
    for (const event of events) if (event.type === 'call_ended') ended.push(event.status);
    if (events.some(({ type }) => type === 'agent_end')) break;
  }
  expect(ended).toEqual(['ok', 'ok']);
  expect(await module.log()).toEqual(['began', 'ended', 'began', 'ended']);
});
