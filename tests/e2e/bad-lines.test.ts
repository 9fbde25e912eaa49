/** Invalid command lines on a bus: exit 2, one sentence that names the problem, nothing sent and nothing written. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureStreams } from '@coxswain/adapter-nats';
import { connect } from '@nats-io/transport-node';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startOwnBus } from './kit/bus.ts';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

const fixture = busAndHost();
let folder: string;
let model: string;

beforeAll(async () => {
  const { bus } = fixture;
  folder = await scratchFolder('lines');
  model = await scripted([{ text: 'Hello.' }]);
  for (const id of ['walrus-1', 'walrus-2', 'penguin']) {
    await bus.command(id, 'start', { prompt: 'x', model: await scripted([{ text: 'Hello.' }]) });
    await endOf(bus, id);
  }
});

/** Lines of which the client or the session says what is wrong. `libs/cli/test` has those that need no bus. */
const LINES: [what: string, line: string[], names: RegExp][] = [
  ['an unknown command', ['steeer', 'a', 'b'], /did you mean cox steer\?/],
  ['an empty dedupe key', ['steer', 'penguin', 'x', '--dedupe-key='], /dedupe_key/],
  [
    'a dedupe key of 257 characters',
    ['message', 'followup', 'penguin', 'x', '--dedupe-key', 'k'.repeat(257)],
    /dedupe_key/,
  ],
  ['a reminder with an empty tag', ['message', 'remind', 'penguin', 'x', '--tag='], /tags/],
  ['a withdrawal of *', ['message', 'withdraw', 'penguin', '*'], /command_id/],
  ['a signal with a space', ['session', 'signal', 'penguin', 'two words'], /name/],
  [
    'data of a signal beyond its bound',
    ['session', 'signal', 'penguin', 'go', '--data', `"${'x'.repeat(9_000)}"`],
    /data/,
  ],
  ['a suspension for more than ten years', ['session', 'suspend', 'penguin', '--for', '3651d'], /for_ms/],
  ['a suspension until a day', ['session', 'suspend', 'penguin', '--until', '2030-01-01'], /until/],
  ['a suspension until an invalid signal', ['session', 'suspend', 'penguin', '--signal', 'a b'], /signal/],
  ['a prefix of two sessions', ['session', 'show', 'walrus'], /walrus-1.*walrus-2|walrus-2.*walrus-1/],
];

test('each exits 2 and names what is wrong, on stderr and as JSON', { timeout: 90_000 }, async () => {
  const { bus } = fixture;
  const before = await bus.client.sessionIds();
  const wrong: string[] = [];
  const check = async ([what, line, names]: (typeof LINES)[number]) => {
    const { code, stdout, stderr } = await cox([...line, '--json'], {
      cwd: folder,
      env: { NATS_URL: bus.natsUrl },
      refused: true,
    });
    const [said, ...more] = stdout.split('\n').filter(Boolean);
    const error = said ? (JSON.parse(said) as { type: string; exit_code: number; message: string }) : null;
    const fits =
      code === 2 && more.length === 0 && error?.type === 'error' && error.exit_code === 2 && names.test(error.message);
    if (!fits || !stderr.startsWith('cox: ') || /\n\s+at /.test(stderr)) {
      wrong.push(`${what}: exit ${code}, stdout ${stdout}, stderr ${stderr}`);
    }
  };
  for (const line of LINES) await check(line);
  expect(wrong).toEqual([]);
  expect((await bus.client.sessionIds()).sort()).toEqual(before.sort());
  for (const id of before) expect((await journalOf(bus, id)).of('command_rejected')).toEqual([]);
  expect(await readdir(folder)).toEqual([]);
});

// Not in `libs/cli`: only the bundle shows whether the YAML package is found in it.
test('with --output yaml answers and errors are YAML documents', async () => {
  const env = { NATS_URL: fixture.bus.natsUrl };
  const [shown, refused] = await Promise.all([
    cox(['session', 'list', '-o', 'yaml', '--limit', '1'], { env }),
    cox(['steeer', '-o', 'yaml'], { env, refused: true }),
  ]);
  expect(shown.stdout, shown.told).toMatch(/^---\nsession_id: [\w-]+\nn: \d+\n/);
  expect(refused.stdout, refused.told).toMatch(/^---\ntype: error\ncode: usage\nmessage: .*\nexit_code: 2\n$/);
});

test('what the world lacks exits 1, and says what and where', async () => {
  const { bus } = fixture;
  const env = { NATS_URL: bus.natsUrl };
  const [root, session, nats] = await Promise.all([
    cox(['run', 'x', '--model', model, '--root', join(folder, 'nowhere')], { env }),
    cox(['attach', 'nobody'], { env }),
    cox(['session', 'list', '--nats', 'nats://secret-token@127.0.0.1:9']),
  ]);
  expect([root.code, session.code, nats.code], root.told + session.told + nats.told).toEqual([1, 1, 1]);
  expect(root.stderr).toContain('root_not_local');
  expect(session.stderr).toContain('session_not_found');
  expect(nats.stderr).toContain('nats_unreachable');
  expect(nats.told).not.toContain('secret-token');
});

test('sessions are listed by pages, and each says how the next is seen', async () => {
  const { bus } = fixture;
  const env = { NATS_URL: bus.natsUrl };
  const all = (await cox(['session', 'list', '--json'], { env })).json.map(({ session_id }) => session_id);
  expect(all.length).toBeGreaterThan(2);
  const first = await cox(['session', 'list', '--json', '--limit', '2'], { env });
  expect(first.json).toMatchObject([
    { session_id: all[0] },
    { session_id: all[1] },
    { type: 'more', sessions: all.length - 2, after: all[1] },
  ]);
  expect(first.stderr).toContain(`${all.length - 2} more sessions: add --after ${all[1]}`);
  const rest = await cox(['session', 'list', '--json', '--after', String(all[1])], { env });
  expect(rest.json.map(({ session_id }) => session_id)).toEqual(all.slice(2));
});

test('a unique prefix is enough', async () => {
  const { bus } = fixture;
  const shown = await cox(['session', 'show', 'peng', '--json'], { env: { NATS_URL: bus.natsUrl } });
  expect(shown.json, shown.told).toMatchObject([{ session_id: 'penguin', stop_reason: 'end_turn' }]);
});

test('env gives a bare client all that it needs', async () => {
  const embedded = await startOwnBus();
  onTestFinished(() => embedded.stop());
  await ensureStreams(embedded.bare);
  const env = await cox(['env', '--state-dir', embedded.stateDir]);
  const [, url = ''] = /^export NATS_URL='?(nats:\/\/[^'\n]+)'?\n$/.exec(env.stdout) ?? [];
  // As a NATS tool reads it: the token before the address.
  const { username, host } = new URL(url);
  const stranger = await connect({ servers: host, token: username });
  const ack = await stranger.request('cox.default.session.penguin.steer', 'try a different approach');
  expect(ack.json()).toMatchObject({ stream: 'COX_COMMANDS' });
  await stranger.close();
});
