/** What handlers leave behind (promises that fail, timers that throw, commands that are not there) ends no process. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Child, COX_MAIN, cox, LEFT_BEHIND_MAIN } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { policyFile, serveHooks } from './kit/hook-service.ts';
import { endOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();

const leaving = `
  import { spawn } from 'node:child_process';
  Promise.reject(new Error('the module leaves this'));
  export const leave = ({ turn }) => {
    if (turn === 1) Promise.reject(new Error('a promise'));
    if (turn === 2) setTimeout(() => { throw new Error('a timer'); }, 1);
    if (turn === 3) spawn('no-such-linter', []);
  };
  export default { post_turn: { id: 'leaves', timeoutMs: 20_000, handler: leave } };
`;
const waits = { calls: [{ tool: 'run_command', args: { command: 'sleep 0.05' } }] };
const start = async (id: string) =>
  fixture.bus.command(id, 'start', {
    prompt: 'Go.',
    model: await scripted([waits, waits, waits, { text: 'Done.' }]),
    root: await scratchFolder('root'),
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  });

/** The failures that a process has logged, with whose they were. */
async function leftBehind(child: Child, count: number): Promise<(readonly [unknown, string])[]> {
  const told = () =>
    child.stderr
      .split('\n')
      .filter((line) => line.includes('unhandled failure in user code'))
      .map((line) => JSON.parse(line) as { hook?: string; module?: string; error: { message: string } })
      .map(({ hook, module, error }) => [hook ?? module, error.message] as const);
  await until(`${count} failures left behind`, () => told().length >= count).catch((error: Error) => {
    throw new Error(`${error.message}: ${child.told}`);
  });
  return told();
}

const left = (module: string, hook: string) => [
  [module, 'the module leaves this'],
  [hook, 'a promise'],
  [hook, 'a timer'],
  [hook, 'spawn no-such-linter ENOENT'],
];

test('a hook service logs it by the hook, and goes on', async () => {
  const file = await policyFile(leaving, 'leaving.js');
  const service = await serveHooks(fixture.bus, file, 'leaving');
  await fixture.host.says(/"service":"leaving".*hooks are registered/);
  await start('served');
  const journal = await endOf(fixture.bus, 'served');
  expect(await leftBehind(service, 4)).toEqual(left(file, 'leaves'));
  expect(journal.of('hook_returned').map(({ verdict }) => verdict?.kind)).toEqual(Array(4).fill('no_objection'));
  expect(await service.terminate()).toEqual({ code: 0, signal: null });
  await cox(['hook', 'remove', 'leaving', '--nats', fixture.bus.natsUrl]);
  await fixture.host.says(/"service":"leaving".*hooks were removed/);
});

test('a host logs it of its manifest, and its sessions go on', async () => {
  const { bus } = fixture;
  await fixture.host.terminate();
  const folder = await scratchFolder('manifest');
  await writeFile(join(folder, 'leaving.js'), leaving);
  const manifest = join(folder, 'coxswain.yaml');
  await writeFile(manifest, "hooks: [{ event: post_turn, id: declared, handler: './leaving.js#leave' }]\n");
  const more = ['--nats', bus.natsUrl, '--state-dir', bus.stateDir];
  fixture.host = new Child(COX_MAIN, ['serve', 'sessions', '--manifest', manifest, '--json', ...more], {
    env: TRUSTED_BUS,
  });
  await fixture.host.says('"type":"ready"');
  await start('hosted');
  const journal = await endOf(bus, 'hosted');
  expect(await leftBehind(fixture.host, 4)).toEqual(left(join(folder, 'leaving.js'), 'declared'));
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(fixture.host.exit).toBeNull();
});

test.each(['rejects', 'throws'])('what %s is the program’s own, it ends over it as ever', async (how) => {
  const [hooks, own] = [new Child(LEFT_BEHIND_MAIN, ['hook', how]), new Child(LEFT_BEHIND_MAIN, ['program', how])];
  expect(await hooks.exited, hooks.told).toEqual({ code: 0, signal: null });
  expect(hooks.stdout).toMatch(/unhandled failure in user code: \{"hook":"code-post_turn-1".*\n(.*\n)*goes on/);
  expect(await own.exited, own.told).toEqual({ code: 1, signal: null });
  expect(own.stderr).toContain('Error: later');
  expect(own.stdout).not.toContain('goes on');
});
