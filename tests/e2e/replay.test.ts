/**
 * A journal from a real bus, with everything in it that a session can live through, replays byte for byte; one that was
 * tampered with stops with `replay_diverged` at the right record, also through `cox session replay`.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalJson, type Json } from '@coxswain/protocol';
import { replayJournal } from '@coxswain/session';
import { beforeAll, describe, expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, expectReplays, type ReadJournal } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';

const fixture = busAndHost();
let folder: string;
let journal: ReadJournal;

/** Tools, an approval, a denial, a steer, a reminder, a rejection, a crash, a large result, a second run. */
beforeAll(async () => {
  const { bus } = fixture;
  folder = await scratchFolder('replay');
  await writeFile(join(folder, 'large.txt'), `${'All work and no play. '.repeat(90)}\n`.repeat(100));
  const model = await scripted([
    { text: 'Let me see.', calls: [{ tool: 'list_files' }, { tool: 'read_file', args: { path: 'large.txt' } }] },
    { calls: ['one', 'two'].map((word) => ({ tool: 'run_command', args: { command: `echo ${word}` } })) },
    { text: 'Done.' },
    { text: 'Done again.' },
    { text: 'And again.' },
  ]);
  await bus.command('whole', 'start', { prompt: 'Do it. 🚣', model, root: folder });
  await eventOf(bus, 'whole', 'approval_requested');
  await bus.command('whole', 'approve', { call_id: 'c2_1', decision: 'allow', actor: 'ann' });
  await eventOf(bus, 'whole', 'call_ended', ({ call_id }) => call_id === 'c2_1');
  await fixture.host.kill();
  await bus.command('whole', 'steer', '{"body":"not so fast"}');
  await bus.command('whole', 'steer', '{"body":');
  await bus.command('whole', 'remind', 'mind the gap');
  fixture.host = await startHost(bus);
  await bus.command('whole', 'approve', { call_id: 'c2_2', decision: 'deny', reason: 'no need' });
  await endOf(bus, 'whole');
  await bus.command('whole', 'prompt', 'Once more.');
  journal = await endOf(bus, 'whole', 2);
});

const blobs = { get: (sha256: string) => fixture.bus.client.blob(sha256) };
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');
type Stored = { [key: string]: Json } & { n: number; events: { [key: string]: Json }[] };

/** Changes a record in place, or gives the members that it shall have instead. */
type Change = (record: Stored) => { readonly [member: string]: Json } | undefined;

/** The journal with one record rewritten, in canonical form as a careful forger would. */
function rewritten(n: number, change: Change): Uint8Array[] {
  return journal.bytes.map((bytes, index) => {
    if (index !== n - 1) return bytes;
    const record = JSON.parse(text(bytes)) as Stored;
    const members = change(record) ?? {};
    return Buffer.from(canonicalJson({ ...record, ...members }), 'utf8');
  });
}

/** The record that holds the first event of a type. */
function recordOf(type: string): number {
  return journal.events.find((event) => event.type === type)?.n as number;
}

test('it replays byte for byte', async () => {
  expect(await replayJournal(journal.bytes, blobs)).toEqual({ records: journal.bytes.length, sessionId: 'whole' });
  const lived = new Set(journal.events.map(({ type }) => type));
  for (const type of [
    'owned',
    'command_rejected',
    'approval_decided',
    'message_injected',
    'steering_received',
    'call_ended',
  ])
    expect(lived).toContain(type);
  expect(journal.of('agent_end')).toHaveLength(2);
});

describe('tampered with', () => {
  const cases: [what: string, at: () => number, stopsAt: (n: number) => number, change: Change][] = [
    [
      'a result that was polished',
      () => recordOf('call_ended'),
      (n) => n,
      ({ events }) => {
        const ended = events.find(({ type }) => type === 'call_ended') as { is_error: Json };
        ended.is_error = true;
        return undefined;
      },
    ],
    [
      'an event that is missing',
      () => recordOf('loop_checkpoint'),
      (n) => n,
      ({ events }) => ({ events: events.slice(0, -1) }),
    ],
    [
      'an event too many',
      () => recordOf('agent_end'),
      (n) => n,
      ({ events }) => ({ events: [...events, events[0] ?? null] }),
    ],
    [
      'an approval given by another',
      () => recordOf('approval_decided'),
      (n) => n,
      ({ events }) => {
        const decided = events.find(({ type }) => type === 'approval_decided') as { actor: Json };
        decided.actor = { name: 'bob', verified: false };
        return undefined;
      },
    ],
    ['another state', () => recordOf('turn_end'), (n) => n, () => ({ state: 'stopped' })],
    ['effects that were not open', () => recordOf('call_started'), (n) => n, () => ({ effects_open: [] })],
    ['a broken chain', () => 3, (n) => n, () => ({ prev_hash: '0'.repeat(64) })],
    ['another number', () => 4, (n) => n, () => ({ n: 5 })],
    ['an unknown member', () => 4, (n) => n, () => ({ note: 'x' })],
    // The core does not make the time: the chain holds it, so it shows in the next record.
    ['another time', () => 4, (n) => n + 1, () => ({ at: '2020-01-01T00:00:00.000Z' })],
  ];
  test.each(cases)('%s', async (_what, at, stopsAt, change) => {
    const n = at();
    const error = await replayJournal(rewritten(n, change), blobs).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'replay_diverged', n: stopsAt(n) });
  });

  test('a record that is missing, one twice, two in the other order, one cut short', async () => {
    const { bytes } = journal;
    const without = [...bytes.slice(0, 4), ...bytes.slice(5)];
    const twice = [...bytes.slice(0, 4), ...bytes.slice(3)];
    const swapped = [...bytes.slice(0, 4), bytes[5], bytes[4], ...bytes.slice(6)] as Uint8Array[];
    const short = [...bytes.slice(0, 4), (bytes[4] as Uint8Array).slice(0, -9), ...bytes.slice(5)];
    for (const broken of [without, twice, swapped, short]) {
      const error = await replayJournal(broken, blobs).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'replay_diverged', n: 5 });
    }
  });

  test('the same values in other bytes', async () => {
    const pretty = journal.bytes.map((bytes, index) =>
      index === 2 ? Buffer.from(JSON.stringify(JSON.parse(text(bytes)), null, 1)) : bytes,
    );
    const error = await replayJournal(pretty, blobs).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'replay_diverged', n: 3 });
  });
});

test('cox session replay says the same, of the bus and of an exported file', async () => {
  const { bus } = fixture;
  const records = journal.bytes.length;
  const where = ['--nats', bus.natsUrl];
  const live = await cox(['session', 'replay', 'whole', ...where]);
  expect(live.stdout, live.told).toBe(`byte-identical (${records} records)\n`);
  expect(live.stderr).toMatch(/^the tail is unproven: no later record of whole /);
  const exported = await cox(['session', 'export', 'whole', ...where]);
  const lines = exported.stdout.split('\n').slice(0, -1);
  expect(lines.filter((line) => line.startsWith('{"at"'))).toEqual(journal.bytes.map(text));
  const sound = join(folder, 'sound.jsonl');
  await writeFile(sound, exported.stdout);
  const replayed = await cox(['session', 'replay', sound, '--json']);
  expect(replayed.json, replayed.told).toEqual([
    { type: 'replayed', session_id: 'whole', records, byte_identical: true, tail_proven: true },
  ]);

  expect(replayed.stderr).toBe('');

  // Not a change that replay sees: the closing line shows that the newest record is missing.
  const cut = join(folder, 'cut.jsonl');
  await writeFile(cut, [...lines.slice(0, -2), lines.at(-1), ''].join('\n'));
  const incomplete = await cox(['session', 'replay', cut]);
  expect([incomplete.code, incomplete.stderr]).toEqual([
    1,
    expect.stringMatching(/^cox: export_end_mismatch: .*closing line counts/),
  ]);
  await writeFile(cut, `${lines.slice(0, -1).join('\n')}\n`);
  const open = await cox(['session', 'replay', cut]);
  expect([open.code, open.stdout, open.stderr]).toEqual([
    0,
    live.stdout,
    expect.stringMatching(/^the tail is unproven: /),
  ]);

  const n = recordOf('call_ended');
  const forged = join(folder, 'forged.jsonl');
  const rewrote = rewritten(n, ({ events }) => ({ events: events.slice(0, -1) })).map(text);
  await writeFile(forged, `${rewrote.join('\n')}\n`);
  const stopped = await cox(['session', 'replay', forged, '--json']);
  expect(stopped.code).toBe(1);
  expect(stopped.json).toMatchObject([{ type: 'replay_diverged', n }]);
  const told = await cox(['session', 'replay', forged]);
  expect(told.stdout).toMatch(new RegExp(`^replay_diverged: record ${n} `));
});

test('an exported journal whose large fields lie apart finds them on its bus, or says that they are missing', async () => {
  const { bus } = fixture;
  await bus.command('large', 'start', {
    prompt: 'x'.repeat(100_000),
    model: await scripted([{ text: 'Long.' }]),
    root: folder,
  });
  const large = await endOf(bus, 'large');
  await expectReplays(bus, large);
  const file = join(folder, 'large.jsonl');
  await writeFile(file, `${large.bytes.map(text).join('\n')}\n`);
  const [there, elsewhere] = await Promise.all([
    cox(['session', 'replay', file, '--nats', bus.natsUrl]),
    cox(['session', 'replay', file, '--state-dir', join(folder, 'elsewhere')]),
  ]);
  expect(there.stdout, there.told).toMatch(/^byte-identical/);
  expect(elsewhere.code).toBe(1);
  expect(elsewhere.stderr).toMatch(/^cox: blob_missing: .*sha256 [0-9a-f]{64}.*\n.*--records-only.*--nats URL/);
  // No server was started to look for them.
  expect(existsSync(join(folder, 'elsewhere'))).toBe(false);
});
