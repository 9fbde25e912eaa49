/** Command lines that cannot be meant: exit 2, one sentence that names the flag, nothing started and nothing written. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
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
  await mkdir(join(folder, 'dir'));
  await writeFile(join(folder, 'broken.yaml'), 'name: [');
  await writeFile(join(folder, 'strange.yaml'), 'name: p\nmoood: sunny\n');
  await writeFile(join(folder, 'later.yaml'), 'name: p\nhooks: [{event: post_turn}]\n');
  await writeFile(join(folder, 'mcp.json'), '{"mcpServers":{"a":{"comand":"x"}}}');
  model = await scripted([{ text: 'Hello.' }]);
  for (const id of ['walrus-1', 'walrus-2', 'penguin']) {
    await bus.command(id, 'start', { prompt: 'x', model: await scripted([{ text: 'Hello.' }]) });
    await endOf(bus, id);
  }
});

const run = (...flags: string[]) => ['run', 'x', ...(flags.includes('--model') ? [] : ['--model', model]), ...flags];

const START_ONLY = /--max-(tokens|usd|time) is an option of new sessions/;
/** What a line is read for, beyond what `libs/cli/test/parse-line.test.ts` holds of every command's. */
const LINES: [what: string, line: () => string[], names: RegExp][] = [
  ['an unknown command', () => ['steeer', 'a', 'b'], /did you mean cox steer\?/],
  ['no model', () => ['run', 'go'], /--model/],
  ['no prompt', () => ['run', '', '--model', 'a/b'], /the prompt is empty/],
  ['tokens for a session that there is', () => ['run', 'x', '--session', 'penguin', '--max-tokens', '1'], START_ONLY],
  ['a sum for a session that there is', () => ['run', 'x', '--session', 'penguin', '--max-usd', '1'], START_ONLY],
  ['a time for a session that there is', () => ['run', 'x', '--session', 'penguin', '--max-time', '1s'], START_ONLY],
  [
    'a port of another server',
    () => ['up', '--port', '1', '--nats', 'nats://127.0.0.1:1'],
    /--port applies to an embedded server/,
  ],
  ['an address of another protocol', () => ['session', 'list', '--nats', 'http://x'], /--nats/],
  ['an id of a star', () => run('--id', '*'), /--id/],
  ['an id of 10 kB', () => run('--id', 'x'.repeat(10_000)), /--id/],
  ['an empty id', () => run('--id='), /--id/],
  ['a port that is none', () => run('--port', '99999'), /--port/],
  ['a model without a provider', () => run('--model', 'gpt'), /--model/],
  ['an address that is none', () => run('--base-url', 'ftp://x'), /--base-url/],
  ['a number of turns that is none', () => run('--max-turns', '-1'), /--max-turns/],
  ['an --on-ask that is none', () => run('--on-ask', 'perhaps'), /--on-ask takes deny, wait/],
  ['a persona that is no YAML', () => run('--persona', join(folder, 'broken.yaml')), /broken\.yaml/],
  ['a persona with an unknown key', () => run('--persona', join(folder, 'strange.yaml')), /moood/],
  ['a hook that says nothing', () => run('--persona', join(folder, 'later.yaml')), /hooks/],
  ['files and those that are served at once', () => ['persona', 'list', 'later.yaml', '--served'], /--served takes/],
  ['a tenant of files', () => ['persona', 'list', '--tenant', 'red'], /--tenant needs --served/],
  ['an MCP file with a mistake', () => run('--mcp', join(folder, 'mcp.json')), /mcp\.json|comand|"command"/],
  ['a mode that is none', () => ['steer', 'penguin', 'x', '--mode', 'asap'], /interrupt_immediate/],
  ['arguments that are no JSON', () => ['approve', 'penguin', 'c1', '--args', '{'], /--args/],
  ['a command id with a dot', () => ['steer', 'penguin', 'x', '--command-id', 'a.b'], /--command-id/],
  [
    'to preempt with a mode that waits',
    () => ['steer', 'penguin', 'x', '--preempt', '--mode', 'finish_step'],
    /--preempt/,
  ],
  ['an empty dedupe key', () => ['steer', 'penguin', 'x', '--dedupe-key='], /dedupe_key/],
  [
    'a dedupe key of 257 characters',
    () => ['message', 'followup', 'penguin', 'x', '--dedupe-key', 'k'.repeat(257)],
    /dedupe_key/,
  ],
  ['a reminder for no turn', () => ['message', 'remind', 'penguin', 'x', '--ttl-turns', '0'], /--ttl-turns/],
  [
    'a reminder for whom there is none',
    () => ['message', 'remind', 'penguin', 'x', '--propagate', 'cousins'],
    /--propagate/,
  ],
  ['a reminder in no voice', () => ['message', 'remind', 'penguin', 'x', '--role-hint', 'whisper'], /--role-hint/],
  ['a reminder with an empty tag', () => ['message', 'remind', 'penguin', 'x', '--tag='], /tags/],
  ['a reminder of nothing', () => ['message', 'remind', 'penguin', ' '], /empty/],
  ['a revoke of a star', () => ['message', 'withdraw', 'penguin', '*'], /command_id/],
  ['a replace by nothing', () => ['message', 'edit', 'penguin', 'm', '  '], /the text is empty/],
  ['a signal whose name is two words', () => ['session', 'signal', 'penguin', 'two words'], /name/],
  [
    'a signal whose data is no JSON',
    () => ['session', 'signal', 'penguin', 'go', '--data', '{"v":'],
    /--data takes JSON/,
  ],
  [
    'a signal with more data than it may have',
    () => ['session', 'signal', 'penguin', 'go', '--data', `"${'x'.repeat(9_000)}"`],
    /data/,
  ],
  ['a suspension for no time', () => ['session', 'suspend', 'penguin', '--for', 'soon'], /--for takes a duration/],
  ['a suspension for more than ten years', () => ['session', 'suspend', 'penguin', '--for', '3651d'], /for_ms/],
  ['a suspension until a day', () => ['session', 'suspend', 'penguin', '--until', '2030-01-01'], /until/],
  [
    'a suspension for and until',
    () => ['session', 'suspend', 'penguin', '--for', '1h', '--until', '2030-01-01T00:00:00Z'],
    /--for/,
  ],
  [
    'what to do at a time that is not said',
    () => ['session', 'suspend', 'penguin', '--on-timeout', 'fail'],
    /--on-timeout/,
  ],
  [
    'to do at a time what there is not',
    () => ['session', 'suspend', 'penguin', '--for', '1h', '--on-timeout', 'panic'],
    /--on-timeout/,
  ],
  ['an input that nobody takes', () => ['session', 'suspend', 'penguin', '--for', '1h', '--input', 'x'], /--input/],
  [
    'no input where one is to be said',
    () => ['session', 'suspend', 'penguin', '--for', '1h', '--on-timeout', 'resume_with_input'],
    /--input/,
  ],
  [
    'a suspension until a signal that has no name',
    () => ['session', 'suspend', 'penguin', '--signal', 'a b'],
    /signal/,
  ],
  ['a number of tokens that is none', () => run('--max-tokens', '0'), /--max-tokens/],
  ['a sum that is none', () => run('--max-usd', '$5'), /--max-usd/],
  ['a time without its unit', () => run('--max-time', '90'), /--max-time/],
  ['a steering file without a path', () => run('--steering-file='), /--steering-file/],
  ['a list of no sessions', () => ['session', 'list', '--limit', '0'], /--limit takes a whole number from 1/],
  ['a tenant that is none', () => ['session', 'list', '--tenant', 'a.b'], /--tenant takes 1 to 64/],
  [
    'sessions of a tenant that is none',
    () => ['session', 'delete', 'penguin', '--yes', '--tenant', 'a b'],
    /--tenant takes 1 to 64/,
  ],
  ['a prefix of two sessions', () => ['session', 'show', 'walrus'], /walrus-1.*walrus-2|walrus-2.*walrus-1/],
];

test('each exits 2 and names what is wrong, on stderr and as JSON', { timeout: 180_000 }, async () => {
  const { bus } = fixture;
  const before = await bus.client.sessionIds();
  const wrong: string[] = [];
  const check = async ([what, line, names]: (typeof LINES)[number]) => {
    const { code, stdout, stderr } = await cox([...line(), '--json'], {
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
  expect((await readdir(folder)).sort()).toEqual(['broken.yaml', 'dir', 'later.yaml', 'mcp.json', 'strange.yaml']);
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
    cox(run('--root', join(folder, 'nowhere')), { env }),
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
