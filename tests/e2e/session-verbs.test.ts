/** The verbs of `cox` that change what waits, put a session to sleep and wake it, with their flags, on a real bus. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type SessionStatus, textOf } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { type CoxEnd, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { waitCommand } from './kit/wait-command.ts';

// Many lines, one after another.
vi.setConfig({ testTimeout: 240_000 });

const fixture = busAndHost();
const ALLOWING = { rules: [{ tool: '*', action: 'allow' as const }] };

/** Runs a line that is taken. */
async function taken(...line: string[]): Promise<CoxEnd> {
  const child = await cox([...line, '--json'], { env: { NATS_URL: fixture.bus.natsUrl } });
  expect(child.code, child.told).toBe(0);
  return child;
}

/** Runs a line that the session refuses. */
async function refused(code: string, ...line: string[]): Promise<void> {
  const child = await cox([...line, '--json'], { env: { NATS_URL: fixture.bus.natsUrl } });
  expect(child.code, child.told).toBe(1);
  expect(child.json.at(-1), child.told).toMatchObject({ type: 'error', code });
}

test('what waits is listed, collapsed, replaced and taken back; an interrupt that does not wait ends the answer', async () => {
  const { bus } = fixture;
  const model = await scripted([
    { match: 'Set a course', text: 'I look about.', delay_ms: 600_000 },
    { match: 'do not look', text: 'East by south it is.' },
  ]);
  await bus.command('waits', 'start', { prompt: 'Set a course.', model });
  await eventOf(bus, 'waits', 'turn_start');

  await taken('steer', 'waits', 'north', '--command-id', 's1', '--dedupe-key', 'course');
  await taken(
    'message',
    'remind',
    'waits',
    'mind the tide',
    '--command-id',
    'r1',
    '--tag',
    'tide',
    '--tag',
    'night',
    '--ttl-turns',
    '3',
    '--preserve-on-compact',
    '--propagate',
    'all',
    '--role-hint',
    'developer',
    '--dedupe-key',
    'tide',
  );
  await taken('steer', 'waits', 'east', '--command-id', 's2', '--dedupe-key', 'course');
  await taken('message', 'followup', 'waits', 'then moor', '--command-id', 'followup-1', '--dedupe-key', 'next');
  const listed = (await taken('message', 'list', 'waits')).json as unknown as SessionStatus['pending'];
  expect(listed.map(({ command_id, kind, body }) => [command_id, kind, body])).toEqual([
    ['s2', 'steer', 'east'],
    ['r1', 'remind', 'mind the tide'],
    ['followup-1', 'followup', 'then moor'],
  ]);
  expect(listed[1]).toMatchObject({
    tags: ['tide', 'night'],
    ttl_turns: 3,
    preserve_on_compact: true,
    propagate: 'all',
    role_hint: 'developer',
    dedupe_key: 'tide',
  });

  await taken('message', 'edit', 'waits', 's2', 'east by south');
  await taken('message', 'withdraw', 'waits', 'followup');
  await refused('already_revoked', 'message', 'withdraw', 'waits', 'followup-1');
  await refused('already_revoked', 'message', 'withdraw', 'waits', 's1');
  await refused('unknown_command_id', 'message', 'edit', 'waits', 'nothing', 'x');
  const heard = await taken(
    'steer',
    'waits',
    'do not look, steer',
    '--preempt',
    '--command-id',
    's3',
    '--wait',
    'delivered',
  );
  expect(heard.json).toMatchObject([{ stage: 'delivered', seam: 'iteration_end', turn: 1 }]);

  const journal = await endOf(bus, 'waits');
  expect(journal.of('message_injected').map(({ command_id, message }) => [command_id, textOf(message)])).toEqual([
    ['s2', 'east by south'],
    ['s3', 'do not look, steer'],
  ]);
  expect(journal.of('message_complete')[0]?.message.partial).toBe(true);
  expect(journal.of('control_outcome').map(({ control, target, status }) => `${control} ${target} ${status}`)).toEqual([
    'replace s2 replaced',
    'revoke followup-1 revoked',
    'revoke followup-1 already_revoked',
    'revoke s1 already_revoked',
    'replace nothing unknown_command_id',
  ]);

  await refused('already_delivered', 'message', 'edit', 'waits', 's2', 'x');
  await taken('message', 'withdraw', 'waits', 'r1');
  expect((await taken('message', 'list', 'waits')).json).toEqual([]);
  const kept = await cox(['steer', 'waits', 'and now?'], { env: { NATS_URL: bus.natsUrl } });
  expect(kept.stdout).toContain('accepted; the session has ended, so it waits for the next run');
});

test('a session sleeps until its signal, is shown to sleep, and keeps what does not interrupt', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('sleeps');
  const command = waitCommand('go');
  const model = await scripted([{ calls: [{ tool: 'run_command', args: { command } }] }, { text: 'He is aboard.' }]);
  await bus.command('sleeps', 'start', { prompt: 'Wait for the pilot.', model, root, permissions: ALLOWING });
  await eventOf(bus, 'sleeps', 'call_started');

  await refused('not_suspended', 'session', 'resume', 'sleeps');
  await taken(
    'session',
    'suspend',
    'sleeps',
    '--signal',
    'pilot',
    '--for',
    '10m',
    '--on-timeout',
    'fail',
    '--reason',
    'the tide',
  );
  await refused('already_suspended', 'session', 'suspend', 'sleeps');
  await writeFile(join(root, 'go'), '');
  expect(await eventOf(bus, 'sleeps', 'suspended')).toMatchObject({
    signal: 'pilot',
    on_timeout: 'fail',
    reason: 'the tide',
    until_ms: expect.any(Number),
  });
  const shown = await cox(['session', 'show', 'sleeps'], { env: { NATS_URL: bus.natsUrl } });
  expect(shown.stdout).toMatch(/pilot/);

  await taken('steer', 'sleeps', 'fetch him a coat');
  await taken('session', 'signal', 'sleeps', 'gulls');
  expect((await journalOf(bus, 'sleeps')).of('resumed')).toEqual([]);
  await taken('session', 'signal', 'sleeps', 'pilot', '--data', '{"name": "Ines"}');
  const journal = await endOf(bus, 'sleeps');
  expect(journal.of('resumed')).toMatchObject([{ cause: 'signal', signal: { name: 'pilot', data: { name: 'Ines' } } }]);
  expect(journal.of('control_outcome').map(({ control, status }) => `${control} ${status}`)).toEqual([
    'resume not_suspended',
    'suspend suspending',
    'suspend already_suspended',
    'signal stored',
    'signal resumed',
  ]);

  await refused('not_running', 'session', 'suspend', 'sleeps');
  await refused('not_running', 'session', 'resume', 'sleeps');
  await refused('not_running', 'session', 'signal', 'sleeps', 'pilot');
  await refused('not_found', 'cancel-call', 'sleeps');
  const gone = await cox(['cancel-call', 'sleeps', 'c1'], { env: { NATS_URL: bus.natsUrl } });
  const told = 'sleeps: c1: not_found (the session has no such call; cox session show lists the open calls)\n';
  expect([gone.code, gone.stdout], gone.told).toEqual([1, told]);
});

test('a suspension until a time says its input; one that is resumed, or until a time that has passed, does not', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('naps');
  const command = waitCommand('go');
  const start = async (id: string) => {
    const model = await scripted([{ calls: [{ tool: 'run_command', args: { command } }] }, { text: 'Awake.' }]);
    await bus.command(id, 'start', { prompt: 'Sleep a little.', model, root, permissions: ALLOWING });
    await eventOf(bus, id, 'call_started');
  };
  await Promise.all(['naps', 'dozes'].map(start));
  await taken(
    'session',
    'suspend',
    'naps',
    '--for',
    '1ms',
    '--on-timeout',
    'resume_with_input',
    '--input',
    'look again',
  );
  await refused('invalid_field', 'session', 'suspend', 'dozes', '--until', '2020-01-01T00:00:00Z');
  await taken('session', 'suspend', 'dozes', '--until', new Date(Date.now() + 3_600_000).toISOString());
  await writeFile(join(root, 'go'), '');

  const napped = await endOf(bus, 'naps');
  expect(napped.of('resumed')).toMatchObject([{ cause: 'timeout' }]);
  const said = napped.of('message_injected').map(({ message }) => `${message.role}: ${textOf(message)}`);
  expect(said).toEqual([expect.stringMatching(/^reminder: /), 'user: look again']);

  await eventOf(bus, 'dozes', 'suspended');
  await taken('session', 'resume', 'dozes');
  expect((await endOf(bus, 'dozes')).of('resumed')).toMatchObject([{ cause: 'command' }]);
});

test('a run that has used up what it was given exits 4; one whose price nobody knows exits 1', async () => {
  const { bus } = fixture;
  const folder = await scratchFolder('limits');
  const usage = { input_tokens: 100, output_tokens: 10 };
  const endless = await scripted([{ calls: [{ tool: 'list_files', args: {} }], usage }], { loop: true });
  const slow = await scripted([{ text: 'Wait.', delay_ms: 600_000 }]);
  const run = (model: string, ...flags: string[]) =>
    cox(['run', 'go', '--root', folder, '--model', model, '--json', ...flags], { env: { NATS_URL: bus.natsUrl } });
  const [tokens, time, usd] = await Promise.all([
    run(endless, '--id', 'spends', '--max-tokens', '500'),
    run(slow, '--max-time', '1s'),
    run(endless, '--max-usd', '0.50'),
  ]);
  expect([tokens.code, time.code, usd.code], tokens.told + time.told + usd.told).toEqual([4, 4, 1]);
  expect(tokens.json.at(-1)).toMatchObject({ type: 'agent_end', stop_reason: 'budget_exceeded' });
  expect(time.json.at(-1)).toMatchObject({ type: 'agent_end', stop_reason: 'budget_exceeded' });
  expect(usd.json.at(-1)).toMatchObject({ type: 'agent_end', error: { code: 'price_unknown' } });

  const [used] = (await taken('session', 'usage', 'spends')).json;
  expect(used).toMatchObject({
    session_id: 'spends',
    runs: [{ run: 1, stop_reason: 'budget_exceeded' }],
    cost_usd: null,
  });
  const people = await cox(['session', 'usage', 'spends'], { env: { NATS_URL: bus.natsUrl } });
  expect(people.stdout).toMatch(/run 1 .*unknown price.*budget_exceeded/);
  await refused('session_not_found', 'session', 'usage', 'nobody');
});

test('the file that --steering-file names steers', async () => {
  const { bus } = fixture;
  const folder = await scratchFolder('told');
  const file = join(folder, 'orders');
  await writeFile(file, 'hold the course\n');
  // The file is empty once the bus has its lines.
  const command = 'while [ -s orders ]; do sleep 0.05; done';
  // The host may accept the steer after the start of the second answer: then a third answer follows.
  const holding = { text: 'Holding.' };
  const model = await scripted([{ calls: [{ tool: 'run_command', args: { command } }] }, holding, holding]);
  const line = ['run', 'go', '--id', 'told', '--root', folder, '--model', model, '--allow', 'run_command'];
  const ran = await cox([...line, '--steering-file', file], { env: { NATS_URL: bus.natsUrl } });
  expect([ran.code, ran.stdout], ran.told).toEqual([0, expect.stringMatching(/^(Holding\.\n)+$/)]);
  expect(await eventOf(bus, 'told', 'steering_received')).toMatchObject({
    body: 'hold the course',
    actor: { name: 'steering-file' },
  });
});
