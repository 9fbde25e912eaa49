/** `cox run` and the demo without an instance: each brings up what it needs, and sessions outlive it. */
import { mkdir, readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linesOf, steady, timeless } from '../../scripts/demo/draw-recording.ts';
import { CoxBed } from './cox-process.ts';
import { startOwnBus } from './kit/bus.ts';
import { REPOSITORY } from './kit/child.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

let bed: CoxBed;
beforeEach(async () => {
  bed = await CoxBed.make();
  await bed.file(
    'slow.yaml',
    `turns:
  - {text: I wait., calls: [{tool: run_command, args: {command: sleep 4; echo waited}}]}
  - {text: Done.}
`,
  );
  await bed.file(
    'held.yaml',
    `turns:
  - {text: I wait., calls: [{tool: run_command, args: {command: 'until [ -e released ]; do sleep 0.1; done'}}]}
  - {text: Done.}
`,
  );
}, 180_000);
afterEach(() => bed.remove(), 180_000);

const slow = ['--model', 'scripted/slow.yaml', '--allow', 'run_command'];
/** Runs until the file `released` exists, so that no test depends on the speed of the machine. */
const held = ['--model', 'scripted/held.yaml', '--allow', 'run_command'];

test('the demo plays through by itself: steered, cancelled, approved, ended, replayed', async () => {
  await mkdir(bed.stateDir);
  const { code, stdout, stderr } = await bed.run(['demo'], { env: { COX_STATE_DIR: '' } });
  expect(code, stdout + stderr).toBe(0);
  // Where the console is stands above everything else; its address has no token outside a terminal.
  expect(stdout.split('\n', 2)).toEqual([
    expect.stringMatching(/^console: http:\/\/127\.0\.0\.1:\d+\/#\/sessions\/\w+ \(asks for the token/),
    expect.stringMatching(/^Coxswain demo/),
  ]);
  for (const part of [
    /bare NATS client steers: nats pub cox\.default\.session\.\w+\.steer "try a different approach"/,
    /harbour__tide_forecast cancelled/,
    /steer delivered at post_tool_dispatch: “try a different approach”/,
    /edit_file replaced one occurrence/,
    /stopped \(end_turn\)/,
    /byte-identical \(\d+ records\)/,
  ]) {
    expect(stdout).toMatch(part);
  }
  // The recording in the README shows what the demo prints.
  const [command, ...recorded] = linesOf(await readFile(join(REPOSITORY, 'docs/images/demo.svg'), 'utf8'));
  const printed = new Set(stdout.split('\n').map((line) => timeless(steady(line))));
  expect(command).toBe('$ npm start');
  expect(recorded.length).toBeGreaterThan(20);
  const missing = recorded.filter((line) => !printed.has(timeless(line)));
  expect(missing, 'npm run record:demo records the demo again').toEqual([]);
}, 180_000);

test('where the demo leaves its state it says how to look again, from whichever folder that was named', async () => {
  const state = `${bed.folder}/a state`;
  const { code, stdout, stderr } = await bed.run(['demo', '--state-dir', 'a state']);
  expect(code, stdout + stderr).toBe(0);
  const [, show = '', id] = /^ {2}\S+\/bin\/cox\.mjs (session show (\w+) .+)$/m.exec(stdout) ?? [];
  expect(show).toBe(`session show ${id} --state-dir '${state}'`);
  expect(stdout).toContain(`/bin/cox.mjs session export ${id} --state-dir '${state}'\n`);
  const shown = await bed.run(['session', 'show', id as string, '--state-dir', state]);
  expect(shown, shown.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('stopped (end_turn)') });
}, 180_000);

test('a host that is killed -9 leaves a session that attach goes on with', async () => {
  const run = bed.start(['run', 'go', '--id', 'killed', ...slow]);
  await run.seen(/▸ run_command/);
  run.child.kill('SIGKILL');
  await run.end;
  const attached = await bed.run(['attach', 'killed']);
  expect({ code: attached.code, stdout: attached.stdout }, attached.stderr).toEqual({ code: 0, stdout: 'Done.\n' });
  expect(attached.stderr).toContain('run_command interrupted');
  expect((await bed.run(['session', 'replay', 'killed'])).stdout).toMatch(/^byte-identical/);
}, 120_000);

test('a run that used another one’s instance goes on when that ends', async () => {
  const first = bed.start(['run', 'go', '--id', 'first', ...slow]);
  await first.seen(/▸ run_command/);
  const second = bed.start(['run', 'go', '--id', 'second', ...slow]);
  await second.seen(/▸ run_command/);
  expect(await first.end).toMatchObject({ code: 0, stdout: 'Done.\n' });
  expect(await second.end).toMatchObject({ code: 0, stdout: 'Done.\n' });
  expect((await bed.run(['session', 'replay', 'second'])).stdout).toMatch(/^byte-identical/);
}, 120_000);

test('runs that start at once in a fresh state folder share the instance that one of them starts', async () => {
  await bed.file('quick.yaml', 'turns: [{text: Done.}]\n');
  const runs = await Promise.all(
    ['one', 'two', 'three'].map((id) => bed.run(['run', 'go', '--id', id, '--model', 'scripted/quick.yaml'])),
  );
  for (const { code, stdout, stderr } of runs) expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: 'Done.\n' });
}, 120_000);

test('cox up waits for a command that works on the state folder, says for which, and comes up when that has ended', async () => {
  const run = bed.start(['run', 'go', '--id', 'before', ...held]);
  await run.seen(/▸ run_command/);
  const hasty = await bed.run(['up', '--json', '--no-gateway', '--wait-for-folder', '1ms']);
  expect(hasty.code, hasty.stderr).toBe(1);
  expect(hasty.stdout).toContain('"state_dir_in_use"');
  expect(hasty.stderr).toMatch(/in use by process \d+, cox run: wait for its end/);
  const up = bed.start(['up', '--json', '--no-gateway']);
  await up.seen(/^cox run \(process \d+\) uses \S+; cox up starts after it has ended$/m);
  await bed.file('released', '');
  expect(await run.end).toMatchObject({ code: 0, stdout: 'Done.\n' });
  await up.seen(/"type":"ready"/);
  expect((await bed.run(['session', 'show', 'before'])).stdout).toContain('end_turn');
  const second = await bed.run(['up', '--json']);
  expect(second.stderr).toMatch(/in use by process \d+, cox up: stop that one/);
  up.child.kill('SIGTERM');
  expect((await up.end).code).toBe(0);
}, 120_000);

test('a cox up that is told to stop while it waits ends at once, with nothing started', async () => {
  const run = bed.start(['run', 'go', '--id', 'before', ...held]);
  await run.seen(/▸ run_command/);
  const up = bed.start(['up', '--json']);
  await up.seen(/cox up starts after it has ended/);
  up.child.kill('SIGTERM');
  expect(await up.end).toMatchObject({ code: 0, stdout: '' });
  await bed.file('released', '');
  expect(await run.end).toMatchObject({ code: 0, stdout: 'Done.\n' });
}, 120_000);

test('SIGINT without a terminal leaves the session behind, with 130', async () => {
  const run = bed.start(['run', 'go', '--id', 'left', ...slow]);
  await run.seen(/▸ run_command/);
  run.child.kill('SIGINT');
  const { code, stderr } = await run.end;
  expect(code).toBe(130);
  expect(stderr).toContain('cox.mjs attach left');
}, 120_000);

test('SIGINT before a host accepts the prompt ends the command in order, with 130', async () => {
  const bus = await startOwnBus();
  try {
    await (await startHost(bus)).kill();
    const run = bed.start(['run', 'go', '--id', 'left', '--nats', bus.natsUrl, ...slow]);
    await until('the start to be stored', async () => (await bus.commandsWaiting()) > 0);
    run.child.kill('SIGINT');
    const { code, stderr } = await run.end;
    expect(stderr).toContain('stopped before a session host accepted the prompt');
    expect(code).toBe(130);
  } finally {
    await bus.stop();
  }
}, 120_000);

test('commands to a session that nothing runs are stored, and taken up later', async () => {
  const run = await bed.run(['run', 'go', '--id', 'parked', '--model', 'scripted/slow.yaml']);
  expect(run.code).toBe(6);
  const approved = await bed.run(['approve', 'parked']);
  expect(approved).toMatchObject({ code: 0, stdout: expect.stringContaining('stored; no host runs this session now') });
  expect(await bed.run(['attach', 'parked'])).toMatchObject({ code: 0, stdout: 'Done.\n' });
}, 120_000);

test('a collector that never answers does not keep the end of a run, which says that spans were dropped', async () => {
  await bed.file('quick.yaml', 'turns:\n  - {text: Done.}\n');
  const mute = createServer();
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`;
  try {
    // Longer than a run may take here.
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '60000' };
    const { code, stdout, stderr } = await bed.run(['run', 'go', '--model', 'scripted/quick.yaml'], {
      env,
      withinMs: 55_000,
    });
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: 'Done.\n' });
    expect(stderr).toMatch(
      /^\d+ spans were dropped: the collector at http:\/\/127\.0\.0\.1:\d+\/v1\/traces did not accept them within 1000 ms/m,
    );
  } finally {
    mute.close();
  }
}, 120_000);
