/**
 * Forks on a real bus, with real processes: of a session whose host was killed, of a fork, with a host that is killed in
 * the middle of the copy, at a decision with the other answer; and a session that moves to another bus as a file.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closingLine } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import { expect, test } from 'vitest';
import { startOwnBus } from './kit/bus.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, expectReplays, expectSound, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const where = () => ['--nats', fixture.bus.natsUrl];
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

/** A session that has asked for one command, been allowed it, and ended. */
async function ended(id: string): Promise<string> {
  const { bus } = fixture;
  const root = await scratchFolder(id);
  const model = await scripted([
    { calls: [{ tool: 'run_command', args: { command: 'echo one' } }] },
    { text: 'Done.' },
    { text: 'And more.' },
  ]);
  await bus.command(id, 'start', { prompt: 'Do it.', model, root });
  await eventOf(bus, id, 'approval_requested');
  await bus.command(id, 'approve', { call_id: 'c1_1', decision: 'allow' });
  await endOf(bus, id);
  return root;
}

test('cox session fork at a decision: the other answer goes the other way, and cox session diff says where', async () => {
  const { bus } = fixture;
  await ended('origin');
  const parked = (await eventOf(bus, 'origin', 'approval_requested')).n;
  const forked = await cox([
    'session',
    'fork',
    'origin',
    '--at',
    String(parked),
    '--id',
    'other-way',
    '--detach',
    ...where(),
  ]);
  expect(forked.stdout, forked.told).toBe('other-way\n');
  await bus.command('other-way', 'approve', { call_id: 'c1_1', decision: 'deny', reason: 'not now' });
  const fork = await endOf(bus, 'other-way');
  expect(fork.of('session_copied')).toMatchObject([{ how: 'fork', session: 'origin', up_to: parked }]);
  expect(fork.of('call_ended')).toMatchObject([{ call_id: 'c1_1', status: 'denied' }]);
  const diff = await cox(['session', 'diff', 'origin', 'other-way', ...where()]);
  expect(diff.code, diff.told).toBe(1);
  expect(diff.stdout).toContain(`the same up to record ${parked}\n`);
  expect(diff.stdout).toMatch(/decision c1_1: allow \| deny: not now/);
  const [found] = (await cox(['session', 'diff', 'origin', 'other-way', '--json', ...where()])).json;
  expect(found).toMatchObject({ type: 'journal_diff', first: { n: [parked + 1, parked + 2] } });
  const same = await cox(['session', 'diff', 'origin', 'origin', ...where()]);
  expect(same.code).toBe(2);
});

test('cox session fork with a prompt goes on with a session that has ended, and shows only what is new', async () => {
  await ended('talk');
  const forked = await cox(['session', 'fork', 'talk', '--prompt', 'And now?', '--id', 'talk-on', ...where()]);
  expect(forked.code, forked.told).toBe(0);
  expect(forked.stdout).toBe('And more.\n');
  const again = await cox(['session', 'fork', 'talk', '--json', '--id', 'talk-as-is', ...where()]);
  expect(again.json, again.told).toMatchObject([{ type: 'forked', session_id: 'talk-as-is', origin: 'talk' }]);
});

test('cox session fork shows the record that it changes', async () => {
  await ended('changed');
  const fork = ['session', 'fork', 'changed', '--at', '1', '--on-ask', 'deny', ...where()];
  const plain = await cox([...fork, '--prompt', 'Do it in French.', '--id', 'in-french']);
  expect(plain.code, plain.told).toBe(0);
  expect(plain.stderr).toContain('› Do it in French.\n');
  const same = await cox([...fork, '--id', 'as-it-was']);
  expect(same.stderr, same.told).not.toContain('› Do it.');
});

test('a session whose host was killed is forked by the next one, and so is the fork', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('killed');
  const model = await scripted([
    { calls: [{ tool: 'run_command', args: { command: 'echo one; sleep 60' } }] },
    { text: 'Done.' },
  ]);
  await bus.command('killed', 'start', {
    prompt: 'Do it.',
    model,
    root,
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  });
  const { n } = await eventOf(bus, 'killed', 'call_started');
  await fixture.host.kill();
  await bus.command('from-killed', 'start', { fork: { session: 'killed', n } });
  fixture.host = await startHost(bus);
  const fork = await endOf(bus, 'from-killed');
  // Whether the origin's call took effect is not known here, and it was never sent for the fork.
  expect(fork.of('call_ended')).toMatchObject([{ status: 'interrupted' }]);
  await bus.command('from-fork', 'start', { fork: { session: 'from-killed', n: fork.records.length } });
  await eventOf(bus, 'from-fork', 'owned', ({ epoch }) => epoch > 2);
  await bus.command('from-fork', 'prompt', { body: 'And more?' });
  const copied = (await journalOf(bus, 'from-fork')).of('session_copied');
  expect(copied).toMatchObject([{ session: 'from-killed', before: [{ session: 'killed', n }] }]);
  await until('its second run', async () => (await journalOf(bus, 'from-fork')).of('agent_start').length === 2);
});

test('a host that is killed in the middle of a copy leaves it to the next one', async () => {
  const { bus } = fixture;
  // Long enough that the kill falls into the copy.
  const turns = Array.from({ length: 200 }, () => ({ calls: [{ tool: 'list_files', args: { path: '.' } }] }));
  const model = await scripted([...turns, { text: 'Done.' }]);
  const root = await scratchFolder('long');
  await bus.command('long', 'start', { prompt: 'Do it.', model, root, max_turns: 300 });
  const { records } = await endOf(bus, 'long');
  await bus.command('copy', 'start', { fork: { session: 'long', n: records.length } });
  await until('a part of the copy', async () => ((await bus.client.session('copy').newest())?.n ?? 0) > 5);
  await fixture.host.kill();
  const half = (await journalOf(bus, 'copy')).records.length;
  fixture.host = await startHost(bus);
  await eventOf(bus, 'copy', 'owned', ({ after_copy }) => after_copy === true);
  const copy = await journalOf(bus, 'copy');
  console.info(`killed after ${half} of ${records.length} records`);
  expect(copy.records.length).toBe(records.length + 1);
  expectSound(copy);
  await expectReplays(bus, copy);
});

test('a session moves to another bus as a file, with its large fields, and goes on there', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('mover');
  const model = await scripted([{ text: 'Long.' }, { text: 'Longer.' }]);
  await bus.command('mover', 'start', { prompt: 'x'.repeat(100_000), model, root });
  const journal = await endOf(bus, 'mover');
  const exported = await cox(['session', 'export', 'mover', ...where()]);
  const lines = exported.lines;
  expect(lines.filter((line) => line.startsWith('{"at"'))).toEqual(journal.bytes.map(text));
  expect(lines.filter((line) => line.startsWith('{"blob"'))).toHaveLength(1);
  const bare = await cox(['session', 'export', 'mover', '--records-only', ...where()]);
  const closing = closingLine({ hash: sha256Hex(journal.bytes.at(-1) as Uint8Array), records: journal.bytes.length });
  expect(bare.lines).toEqual([...journal.bytes.map(text), closing]);
  const file = join(root, 'mover.jsonl');
  await writeFile(file, exported.stdout);
  const alone = await cox(['session', 'replay', file, '--state-dir', join(root, 'no-bus')]);
  expect(alone.stdout, alone.told).toMatch(/^byte-identical/);

  const elsewhere = await startOwnBus();
  const host = await startHost(elsewhere);
  try {
    const there = ['--nats', elsewhere.natsUrl];
    const imported = await cox(['session', 'import', file, '--json', ...there]);
    expect(imported.json, imported.told).toMatchObject([
      { type: 'imported', session_id: 'mover', records: journal.bytes.length, tail_proven: true },
    ]);
    expect((await cox(['session', 'import', file, ...there])).stderr).toMatch(/session_exists/);
    const piped = await cox(['session', 'import', '-', '--as', 'mine', ...there], { input: exported.stdout });
    expect(piped.stdout, piped.told).toBe('mine\n');
    for (const id of ['mover', 'mine']) {
      await elsewhere.command(id, 'prompt', 'And more?');
      const moved = await endOf(elsewhere, id, 2);
      expect(moved.of('agent_end')).toHaveLength(2);
      await expectReplays(elsewhere, moved);
    }
    const shown = await cox(['session', 'show', 'mine', ...there]);
    expect(shown.stdout).toMatch(/stopped \(end_turn\)/);
    const spoilt = join(root, 'spoilt.jsonl');
    await writeFile(spoilt, exported.stdout.replace('"stop_reason":"end_turn"', '"stop_reason":"cancelled"'));
    const refused = await cox(['session', 'import', spoilt, '--as', 'spoilt', ...there]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/replay_diverged: line \d+: record \d+ differs/);
    expect(await elsewhere.client.session('spoilt').newest()).toBe(null);
  } finally {
    await host.kill();
    await elsewhere.stop();
  }
});

test.each([
  [['session', 'fork', 'origin', '--at', '0'], 2, /--at takes a whole number/],
  [['session', 'fork', 'origin', '--at', '9999'], 1, /fork_record_not_found/],
  [['session', 'fork', 'nobody-here'], 1, /session_not_found/],
  [['session', 'fork', 'origin', '--verdict', 'yes'], 2, /--verdict yes/],
  [['session', 'fork', 'origin', '--prompt', 'x', '--result', 'y'], 2, /--result cannot be combined with --prompt/],
  [
    ['session', 'fork', 'origin', '--at', '2', '--result', 'y'],
    1,
    /fork_change_misfit.*record 2 is the resolution of persona/,
  ],
  [['session', 'fork', 'origin', '--model', 'nameless'], 2, /--model nameless/],
  [['session', 'import', '/no/such/file'], 2, /is not a file/],
  [['session', 'import', '-', '--as', 'a b'], 2, /--as takes/],
  [['session', 'diff', 'origin'], 2, /<a> <b>|session/],
])('%j ends with %i', async (args, code, says) => {
  const told = await cox([...(args as string[]), ...where()], { input: '' });
  expect(told.code, told.told).toBe(code);
  expect(told.stderr).toMatch(says as RegExp);
});
