/**
 * One session on a real bus that lives through everything hooks can do to it, asked of services in processes of their
 * own: vetoes, rewrites, a reminder, permission answers, a job, a guard, a time-out, a throw, garbage, a service killed
 * while it is asked. Then nobody is registered any more: the journal alone gives the same bytes, and a fork at the veto,
 * with the other verdict, goes the other way.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replayJournal } from '@coxswain/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Child, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { policyFile, serveHooks } from './kit/hook-service.ts';
import { endOf, eventOf, expectReplays, journalOf, type ReadJournal } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const policy = `
  import { defineHooks } from '@coxswain/client';
  const at = (path: string) => \`tool.args.path == "\${path}"\`;
  export default defineHooks({
    user_prompt_submit: { id: 'door', handler: ({ prompt }) => !prompt.includes('from ashore') },
    PreToolUse: [
      { id: 'veto', pattern: at('secret.txt'), handler: () => ({ deny: 'it is a secret' }) },
      { id: 'behind', pattern: at('secret.txt'), handler: () => true },
      { id: 'skip', pattern: at('a.txt'), handler: ({ tool }) => ({ args: { ...tool.args, offset: 2 } }) },
      { id: 'few', pattern: at('a.txt'), handler: ({ tool }) => ({ args: { ...tool.args, limit: 1 } }) },
      { id: 'slow', pattern: at('slow.txt'), timeoutMs: 150, handler: () => new Promise<never>(() => {}) },
      { id: 'broken', pattern: at('broken.txt'), onError: 'fail_open', handler: () => { throw new Error('asleep'); } },
      { id: 'garbage', pattern: at('garbage.txt'), handler: () => JSON.parse('{"denied": "a slip"}') },
    ],
    permission_asked: {
      id: 'clerk',
      handler: ({ tool }) =>
        String(tool.args.command).includes('rm ')
          ? { decision: 'deny', reason: 'nothing is removed' }
          : { decision: 'allow', reason: 'harmless' },
    },
    PostToolUse: { id: 'redact', pattern: at('a.txt'), handler: ({ result }, { feedback }) => {
      feedback('a word was blacked out');
      return result.content.map((part) => part.type === 'text' ? part.text.replace('Smith', '#####') : '').join('');
    } },
    post_turn: [
      { id: 'tide', handler: ({ turn }) => (turn === 1 ? { body: 'Mind the tide.' } : undefined) },
      { id: 'lint', handler: ({ turn }) => (turn === 2 ? { job: { status: 'queued', jobId: 'lint-1' } } : undefined) },
    ],
  });
`;
const hanging = (asked: string) => `
  import { writeFileSync } from 'node:fs';
  export default { PreToolUse: {
    id: 'dead', pattern: 'tool.args.path == "dead.txt"', timeoutMs: 5_000,
    handler: () => { writeFileSync(${JSON.stringify(asked)}, ''); return new Promise(() => {}); },
  } };
`;

const read = (...paths: string[]): ScriptTurn => ({
  calls: paths.map((path) => ({ tool: 'read_file', args: { path } })),
});
const turns: ScriptTurn[] = [
  read('secret.txt'),
  read('a.txt'),
  read('slow.txt', 'broken.txt', 'garbage.txt'),
  { calls: ['echo yes', 'rm a.txt'].map((command) => ({ tool: 'run_command', args: { command } })) },
  read('dead.txt'),
  { text: 'Done.' },
];

const fixture = busAndHost();
const where = () => ['--nats', fixture.bus.natsUrl];
const services: Child[] = [];
let journal: ReadJournal;
let veto: number;

beforeAll(async () => {
  const { bus, host } = fixture;
  const serve = async (name: string, text: string) => {
    const service = await serveHooks(bus, await policyFile(text), name);
    services.push(service);
    await host.says(new RegExp(`"service":"${name}".*hooks are registered`));
    return service;
  };
  await serve('policy', policy);
  const asked = join(await scratchFolder('gate'), 'asked');
  const dying = await serve('dying', hanging(asked));

  const root = await scratchFolder('root');
  for (const name of ['secret', 'slow', 'broken', 'garbage', 'dead'])
    await writeFile(join(root, `${name}.txt`), `what ${name} holds\n`);
  await writeFile(join(root, 'a.txt'), 'Dear Jones,\nDear Smith,\nDear Brown,\n');
  const permissions = { rules: [{ tool: 'read_file', action: 'allow' }] };
  await bus.command('whole', 'start', { prompt: 'Go.', model: await scripted(turns), root, permissions });
  await until('the dying service to be asked', () => readFile(asked).catch(() => null));
  await bus.command('whole', 'steer', { body: 'Word from ashore: come about.' });
  await eventOf(bus, 'whole', 'steering_received');
  await dying.kill();
  journal = await endOf(bus, 'whole');
  veto = journal.of('hook_vetoed').find(({ hook }) => hook === 'veto')?.n as number;

  // From here on nobody is asked, and nobody is registered.
  for (const service of services) await service.terminate();
  for (const name of ['policy', 'dying']) {
    expect((await cox(['hook', 'remove', name, ...where()])).code).toBe(0);
    await host.says(new RegExp(`"service":"${name}".*hooks were removed`));
  }
});

afterAll(() => Promise.all(services.map((service) => service.kill())));

describe('the tape holds', () => {
  const returned = () =>
    journal
      .of('hook_returned')
      .map(({ hook, verdict, failure, not_run }) => [hook, failure?.code ?? (not_run ? 'not_run' : verdict?.kind)]);

  test('each answer, and why there was none, in the order in which it was asked', () => {
    const quiet = ['tide', 'lint'].map((hook) => [hook, 'no_objection']);
    expect(returned()).toEqual([
      ['door', 'no_objection'],
      ['veto', 'deny'],
      ['behind', 'not_run'],
      ...quiet,
      ['skip', 'rewrite_args'],
      ['few', 'rewrite_args'],
      ['redact', 'rewrite_result'],
      ['tide', 'no_objection'],
      ['lint', 'job'],
      ['slow', 'hook_timeout'],
      ['broken', 'hook_threw'],
      ['garbage', 'verdict_invalid'],
      ...quiet,
      ['clerk', 'decision'],
      ['clerk', 'decision'],
      ...quiet,
      ['dead', 'hook_timeout'],
      ['door', 'block'],
      ...quiet,
      ...quiet,
    ]);
    // Each was asked in a record before its answer.
    const calls = journal.of('hook_call');
    for (const { hook, effect_id, n } of journal.of('hook_returned'))
      expect(calls.find((call) => call.hook === hook && call.effect_id === effect_id)?.n).toBeLessThan(n);
  });

  test('what each handler saw where a rewrite had changed it, and what it said as it said it', () => {
    const few = journal.of('hook_returned').find(({ hook }) => hook === 'few');
    expect(few?.payload).toMatchObject({ tool: { args: { path: 'a.txt', offset: 2 } } });
    expect(few?.raw).toEqual({ args: { path: 'a.txt', offset: 2, limit: 1 } });
    expect(journal.of('hook_returned').find(({ hook }) => hook === 'garbage')?.raw).toEqual({ denied: 'a slip' });
  });

  test('every veto and every decision', () => {
    expect(journal.of('hook_vetoed').map(({ hook, decision }) => [hook, decision])).toEqual([
      ['veto', 'deny'],
      ['slow', 'deny'],
      ['garbage', 'deny'],
      ['clerk', 'allow'],
      ['clerk', 'deny'],
      ['dead', 'deny'],
      ['door', 'block'],
    ]);
  });

  test('what became of it', () => {
    const result = (callId: string) => {
      const ended = journal.of('call_ended').find(({ call_id }) => call_id === callId);
      return [ended?.status, ended?.result.content.map((part) => (part.type === 'text' ? part.text : '')).join('')];
    };
    expect(result('c1_1')).toEqual(['denied', expect.stringContaining('it is a secret')]);
    expect(result('c2_1')).toEqual(['ok', expect.stringContaining('Dear #####')]);
    expect(result('c2_1')[1]).not.toMatch(/Jones|Brown/);
    expect(result('c3_1')).toEqual(['denied', expect.stringContaining('no answer within 150 ms')]);
    expect(result('c3_2')).toEqual(['ok', expect.stringContaining('what broken holds')]);
    expect(result('c3_3')).toEqual(['denied', expect.stringContaining('denied')]);
    expect(result('c4_1')).toEqual(['ok', expect.stringContaining('yes')]);
    expect(result('c4_2')).toEqual(['denied', expect.stringContaining('nothing is removed')]);
    expect(result('c5_1')).toEqual(['denied', expect.stringContaining('no answer within 5000 ms')]);
    expect(journal.of('reminder_fired')).toHaveLength(1);
    expect(journal.of('feedback_received').map(({ body }) => body)).toEqual(['a word was blacked out']);
    expect(journal.of('injection_blocked')).toHaveLength(1);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  });
});

test('it replays byte for byte in a process that has no handler, no bus, no model and no tool', async () => {
  const folder = await scratchFolder('alone');
  const exported = await cox(['session', 'export', 'whole', ...where()]);
  const file = join(folder, 'whole.jsonl');
  await writeFile(file, exported.stdout);
  const replayed = await cox(['session', 'replay', file, '--state-dir', join(folder, 'no-bus')], { cwd: folder });
  expect(replayed.stdout, replayed.told).toBe(`byte-identical (${journal.bytes.length} records)\n`);
  expect(await replayJournal(journal.bytes, { get: async () => null })).toMatchObject({
    records: journal.bytes.length,
  });
  // A tape that was tampered with is found out where it was.
  const n = journal.of('hook_returned').find(({ hook }) => hook === 'few')?.n as number;
  const forged = journal.bytes.map((bytes) =>
    Buffer.from(Buffer.from(bytes).toString().replace('"limit":1', '"limit":2')),
  );
  await expect(replayJournal(forged, { get: async () => null })).rejects.toMatchObject({ code: 'replay_diverged', n });
});

test('a fork at the veto, with the other verdict, goes the other way', async () => {
  const { bus } = fixture;
  const other = ['--verdict', 'veto=true', '--verdict', 'behind=true'];
  const forked = await cox([
    'session',
    'fork',
    'whole',
    '--at',
    String(veto),
    ...other,
    '--id',
    'other-way',
    '--detach',
    ...where(),
  ]);
  expect(forked.stdout, forked.told).toBe('other-way\n');
  // Its commands ask a person now, as nobody else does.
  for (const call_id of ['c4_1', 'c4_2']) {
    await eventOf(bus, 'other-way', 'approval_requested', (event) => event.call_id === call_id);
    await bus.command('other-way', 'approve', { call_id, decision: 'deny' });
  }
  const fork = await endOf(bus, 'other-way');
  expect(fork.of('session_copied')).toMatchObject([{ how: 'fork', session: 'whole', up_to: veto }]);
  expect(fork.of('hook_vetoed')).toEqual([]);
  expect(fork.of('hooks_changed').at(-1)).toMatchObject({ n: veto + 2, table: [] });
  expect(fork.of('call_ended')[0]).toMatchObject({
    call_id: 'c1_1',
    status: 'ok',
    result: { content: [{ text: expect.stringContaining('what secret holds') }] },
  });
  // Nobody was asked after the fork: what is on its tape before it was copied.
  expect(new Set(fork.of('hook_call').map(({ hook }) => hook))).toEqual(new Set(['door', 'veto', 'behind']));
  await expectReplays(bus, fork);

  const diff = await cox(['session', 'diff', 'whole', 'other-way', ...where()]);
  expect(diff.stdout, diff.told).toContain(`the same up to record ${veto - 1}\n`);
  expect(diff.stdout).toContain(
    'verdict veto PreToolUse c1_1: {"kind":"deny","reason":"it is a secret"} | {"kind":"no_objection"}',
  );
  expect(diff.stdout).toMatch(/result c1_1: denied: .* \| ok: .*what secret holds/);
  // The one that it came from is as it was.
  expect((await journalOf(bus, 'whole')).bytes).toEqual(journal.bytes);
});
