/** Hooks over the bus, each service a process of its own: asked, killed, doubled, restarted, changed and malicious. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SERVED_LIVENESS, subjects } from '@coxswain/protocol';
import { afterEach, describe, expect, test } from 'vitest';
import { type Child, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { policyFile, serveHooks } from './kit/hook-service.ts';
import { endOf, eventOf, type ReadJournal } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const services: Child[] = [];
const names = new Set<string>();

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.terminate()));
  for (const name of names) await cox(['hook', 'remove', name, '--nats', fixture.bus.natsUrl]);
  for (const name of names) await fixture.host.says(new RegExp(`"service":"${name}".*hooks were removed`));
  names.clear();
});

let serial = 0;
const fresh = (what: string) => `${what}-${++serial}`;

/** Serves a module under a name that only this test uses, and waits until the host knows of it. */
async function serve(text: string, name = fresh('policy')): Promise<{ service: Child; name: string; file: string }> {
  const file = await policyFile(text);
  const service = await another(file, name);
  await fixture.host.says(new RegExp(`"service":"${name}".*hooks are registered`));
  return { service, name, file };
}

async function another(file: string, name: string): Promise<Child> {
  names.add(name);
  const service = await serveHooks(fixture.bus, file, name);
  services.push(service);
  return service;
}

async function start(turns: readonly ScriptTurn[], more: object = {}): Promise<string> {
  const id = fresh('s');
  const root = await scratchFolder('root');
  await writeFile(join(root, 'a.txt'), 'the letter a');
  const permissions = { rules: [{ tool: '*', action: 'allow' }] };
  await fixture.bus.command(id, 'start', { prompt: 'Go.', model: await scripted(turns), root, permissions, ...more });
  return id;
}

const reads: ScriptTurn = { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] };
const done: ScriptTurn = { text: 'Done.' };
const answers = (journal: ReadJournal) => journal.of('hook_returned');

test('a handler in TypeScript is asked over the bus, with payload, transcript and feedback', async () => {
  await serve(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({
      PreToolUse: {
        pattern: 'read_*',
        async handler({ tool }, { transcript, feedback, call, session }) {
          const seen = await transcript();
          feedback(\`asked about \${tool.name} of \${session.id} after \${seen.length} messages\`);
          return { args: { ...call?.args, offset: 1 } };
        },
      },
      post_tool_use: ({ isError }) => \`rewritten, \${isError satisfies boolean}\`,
      transform_context: async (_payload, { messages }) => ({ messages: (await messages()).slice(0, 3) }),
    });
  `);
  const id = await start([reads, done]);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('call_started')).toMatchObject([{ args: { path: 'a.txt', offset: 1 } }]);
  expect(journal.of('call_ended')).toMatchObject([{ result: { content: [{ text: 'rewritten, false' }] } }]);
  expect(journal.of('feedback_received')).toMatchObject([{ body: `asked about read_file of ${id} after 2 messages` }]);
  expect(answers(journal).map(({ point, failure }) => [point, failure])).toEqual([
    ['transform_context', undefined],
    ['PreToolUse', undefined],
    ['PostToolUse', undefined],
    ['transform_context', undefined],
  ]);
});

describe('a service that ends while it is asked', () => {
  const hangs = (onError: string, gate: string) => `
    import { appendFileSync } from 'node:fs';
    export default {
      PreToolUse: {
        timeoutMs: 2_000, onError: '${onError}',
        handler: () => { appendFileSync(${JSON.stringify(gate)}, 'asked\\n'); return new Promise(() => {}); },
      },
    };
  `;

  test.each([
    ['fail_closed', 'denied'],
    ['fail_open', 'ok'],
  ])('killed -9, %s: the call is %s, and the tape says why', async (onError, status) => {
    const gate = join(await scratchFolder('gate'), 'asked');
    const { service } = await serve(hangs(onError, gate));
    const id = await start([reads, done]);
    await until('the handler to be asked', () => readFile(gate, 'utf8').catch(() => null));
    await service.kill();
    const journal = await endOf(fixture.bus, id);
    expect(journal.of('hook_call')).toMatchObject([{ point: 'PreToolUse' }]);
    // It might have come back within its time-out.
    expect(answers(journal)).toMatchObject([{ failure: { code: 'hook_timeout' } }]);
    expect(journal.of('call_ended')).toMatchObject([{ status }]);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  });

  test('one that never answers costs its time-out and no more', async () => {
    await serve(`export default { PreToolUse: { timeoutMs: 200, handler: () => new Promise(() => {}) } };`);
    const journal = await endOf(fixture.bus, await start([reads, done]));
    expect(answers(journal)).toMatchObject([{ failure: { code: 'hook_timeout' } }]);
    expect(journal.of('call_ended')).toMatchObject([{ status: 'denied' }]);
  });

  test('a drain is no deregistration: nobody is asked and the policy holds, until it is removed', async () => {
    const { service, name } = await serve(`export default { PreToolUse: () => true };`);
    expect(await service.terminate()).toEqual({ code: 0, signal: null });
    await fixture.host.says(new RegExp(`"service":"${name}".*a hook service is gone`));
    const journal = await endOf(fixture.bus, await start([reads, done]));
    expect(answers(journal)).toMatchObject([{ failure: { code: 'hook_unavailable' } }]);
    expect(journal.of('call_ended')).toMatchObject([{ status: 'denied' }]);

    const listed = await cox(['hook', 'list', '--nats', fixture.bus.natsUrl]);
    expect(listed.stdout).toMatch(new RegExp(`^${name} {2}no instances\\n {2}${name}-PreToolUse-1 {2}PreToolUse`, 'm'));
    expect((await cox(['hook', 'remove', name, '--nats', fixture.bus.natsUrl])).code).toBe(0);
    names.delete(name);
    await fixture.host.says(new RegExp(`"service":"${name}".*hooks were removed`));
    const free = await endOf(fixture.bus, await start([reads, done]));
    expect(free.of('hook_call')).toEqual([]);
    expect(free.of('call_ended')).toMatchObject([{ status: 'ok' }]);
    expect((await cox(['hook', 'remove', name, '--nats', fixture.bus.natsUrl])).stderr).toContain(
      'hook_service_unknown',
    );
  });
});

describe('several instances', () => {
  const counting = (file: string) => `
    import { appendFileSync } from 'node:fs';
    export default { PreToolUse: async () => {
      appendFileSync(${JSON.stringify(file)}, process.pid + '\\n');
      await new Promise((resolve) => setTimeout(resolve, 20));
    } };
  `;
  const pidsIn = async (file: string) => (await readFile(file, 'utf8')).trim().split('\n').map(Number);

  test('share the work', async () => {
    const counted = join(await scratchFolder('count'), 'pids');
    const { service, name, file } = await serve(counting(counted));
    const second = await another(file, name);
    const ids = await Promise.all(Array.from({ length: 4 }, () => start([...Array(10).fill(reads), done])));
    const journals = await Promise.all(ids.map((id) => endOf(fixture.bus, id)));
    expect(journals.flatMap((journal) => [...answers(journal)]).filter(({ failure }) => failure)).toEqual([]);
    const pids = await pidsIn(counted);
    expect(pids).toHaveLength(40);
    expect(new Set(pids)).toEqual(new Set([service.pid, second.pid]));
    const removed = await cox(['hook', 'remove', name, '--nats', fixture.bus.natsUrl]);
    expect(removed.stderr).toMatch(/hook_service_serving: \S+ has 2 running instances;/);
  });

  test('restarted one after another lose no consult', async () => {
    const counted = join(await scratchFolder('count'), 'pids');
    const { service, name, file } = await serve(counting(counted));
    let before = [service, await another(file, name)];
    const turns = 60;
    const id = await start([...Array(turns).fill(reads), done], { max_turns: turns + 1 });
    const asked = async () => (await pidsIn(counted).catch(() => [])).length;
    await until('the first consults', async () => (await asked()) > 3);
    const after: Child[] = [];
    for (const old of before) {
      expect((await old.terminate()).code).toBe(0);
      after.push(await another(file, name));
    }
    before = after;
    const journal = await endOf(fixture.bus, id);
    expect(answers(journal)).toHaveLength(turns);
    expect(answers(journal).filter(({ failure }) => failure)).toEqual([]);
    expect(await asked()).toBe(turns);
  });
});

test('a changed module is served at once, and a broken one leaves the version before, and says where it is broken', async () => {
  const deny = (reason: string) => `export default { PreToolUse: () => ({ deny: ${JSON.stringify(reason)} }) };`;
  const { service, file } = await serve(deny('the first'));
  const reasonOf = async () => {
    const journal = await endOf(fixture.bus, await start([reads, done]));
    return JSON.stringify(journal.of('call_ended'));
  };
  expect(await reasonOf()).toContain('the first');
  await writeFile(file, 'export default { PreToolUse: () => ({ deny: ');
  await service.says('the earlier version stays in use', 'stderr');
  expect(service.stderr).toContain(`${file}:1`);
  expect(await reasonOf()).toContain('the first');
  await writeFile(file, deny('the second'));
  await service.says('hooks reloaded', 'stderr');
  expect(await reasonOf()).toContain('the second');
});

test('a job that ends before its receipt is recorded is reported all the same, and one that there is not is refused', async () => {
  const gate = join(await scratchFolder('gate'), 'go');
  await serve(`
    import { existsSync } from 'node:fs';
    export default { file_edited: { timeoutMs: 60_000, handler: async () => {
      while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 10));
      return { job: { status: 'queued', jobId: 'lint' } };
    } } };
  `);
  const id = await start([{ calls: [{ tool: 'write_file', args: { path: 'b.txt', content: 'b' } }] }, done]);
  const session = fixture.bus.client.session(id);
  await eventOf(fixture.bus, id, 'hook_call');
  const reported = session.reportJob({ job: { jobId: 'lint', status: 'succeeded' } }, { wait: 'accepted' });
  await eventOf(fixture.bus, id, 'job_report_deferred');
  await writeFile(gate, '');
  expect((await reported).receipt).toMatchObject({ stage: 'accepted' });
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('job_reported')).toMatchObject([{ receipt: { job_id: 'lint', status: 'succeeded' } }]);

  const unknown = { job: { jobId: 'another', status: 'failed' as const } };
  await expect(session.reportJob(unknown, { wait: 'accepted' })).rejects.toThrow(/job another/);
});

test('a point that nobody has registered for costs no message', async () => {
  const asked: string[] = [];
  const tap = fixture.bus.bare.subscribe('cox.*.hook.>', {
    callback: (_error, message) => void asked.push(message.subject),
  });
  const { name } = await serve(`export default { post_turn: () => {} };`);
  await endOf(fixture.bus, await start([reads, done]));
  // One for each of the two turns, and none for any other point.
  const subject = subjects.hook('default', name);
  expect(asked).toEqual([subject, subject]);
  tap.unsubscribe();
});

test('points that this session never comes to are served, stand in the journal’s table and answer whoever asks them', async () => {
  const { name } = await serve(`
    const told = ({ event }) => ({ body: 'asked at ' + event });
    export default {
      on_handoff_emitted: told,
      on_persona_paused: told,
      on_persona_resumed: told,
    };
  `);
  const journal = await endOf(fixture.bus, await start([reads, done]));
  const table =
    journal
      .of('hooks_changed')
      .at(-1)
      ?.table.filter(({ id }) => id.startsWith(name)) ?? [];
  const points = ['OnHandoffEmitted', 'OnPersonaPaused', 'OnPersonaResumed'];
  expect(table.map(({ point }) => point)).toEqual(points);
  expect(journal.of('hook_call')).toEqual([]);

  for (const { id, point } of table) {
    const payload = { event: point, session: { id: 's' }, persona: 'mate', turn: 1 };
    const args = { point, payload, timeout_ms: 1_000, fetch: '_INBOX.nowhere' };
    const question = JSON.stringify({ v: 1, key: `default.s.1-0.${id}`, session_id: 's', hook: id, args });
    const answer = await fixture.bus.bare.request(subjects.hook('default', name), question, { timeout: 10_000 });
    expect(answer.json()).toMatchObject({ answer: { status: 'returned', raw: { body: `asked at ${point}` } } });
  }
});

describe('malicious answers do no harm', () => {
  test('of handlers: too much, too deep, prototype keys, a mutated payload, a promise that is kept twice, no JSON', async () => {
    await serve(`
      const answers = {
        huge: () => ({ deny: 'x'.repeat(2_000_000) }),
        proto: () => JSON.parse('{"args": {"__proto__": {"path": "a.txt"}}}'),
        mutate: (tool) => { tool.args.path = 'a.txt'; },
        twice: () => ({ then(settle) { settle({ deny: 'once' }); settle(true); } }),
        loop: () => { const a = {}; a.a = a; return a; },
        uncalled: () => () => ({ deny: 'x' }),
        deep: () => ({ args: { path: JSON.parse('['.repeat(2_000) + ']'.repeat(2_000)) } }),
      };
      export default { PreToolUse: ({ tool }) => answers[tool.args.path](tool) };
    `);
    const paths = ['huge', 'proto', 'mutate', 'twice', 'loop', 'uncalled', 'deep'];
    const calls = paths.map((path) => ({ tool: 'read_file', args: { path } }));
    const journal = await endOf(fixture.bus, await start([{ calls }, done]));
    expect(answers(journal).map(({ failure, verdict }) => failure?.code ?? verdict)).toEqual([
      'return_unreadable',
      'verdict_invalid',
      'hook_threw',
      { kind: 'deny', reason: 'once' },
      'return_unreadable',
      'return_unreadable',
      'verdict_invalid',
    ]);
    expect(journal.of('call_ended').map(({ status }) => status)).toEqual(paths.map(() => 'denied'));
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  });

  test('of a service: garbage, answers to another session, answers twice', async () => {
    const { bare } = fixture.bus;
    const name = fresh('rogue');
    const id = `${name}-1`;
    const hook = { id, point: 'PreToolUse', pattern: '*', priority: 0, timeout_ms: 5_000, on_error: 'fail_closed' };
    const announcement = { v: 1, service: name, since: new Date().toISOString(), registrations: [hook] };
    let asks = 0;
    const answering = bare.subscribe(subjects.hook('default', name), {
      callback(_error, message) {
        const { key } = message.json() as { key: string };
        const common = { v: 1, key, instance: 'rogue' };
        // Otherwise the question would go to the instance once more.
        message.respond(JSON.stringify({ ...common, type: 'running' }));
        const answer = { ...common, type: 'answered', answer: { status: 'returned', raw: true } };
        const rogue = [
          'no json',
          JSON.stringify({ ...answer, key: 'default.another.1-0' }),
          'x'.repeat(600_000),
          // An answer that is invalid ends the question.
          JSON.stringify({ ...answer, more: 1 }),
        ];
        message.respond(rogue[asks++] as string);
        message.respond(JSON.stringify({ ...answer, answer: { status: 'returned', raw: { deny: 'the first' } } }));
        message.respond(JSON.stringify(answer));
      },
    });
    await bare.request(subjects.announcement('hooks', 'default', name), JSON.stringify(announcement), {
      timeout: 10_000,
    });
    const beats = setInterval(() => {
      bare.publish(subjects.heartbeat('hooks', 'default', name, 'rogue'), JSON.stringify({ v: 1, state: 'serving' }));
    }, SERVED_LIVENESS.heartbeatMs);
    try {
      await fixture.host.says(new RegExp(`"service":"${name}".*hooks are registered`));
      const journal = await endOf(fixture.bus, await start([...Array(4).fill(reads), done]));
      expect(answers(journal).map(({ failure, verdict }) => failure?.code ?? verdict)).toEqual([
        ...Array(3).fill({ kind: 'deny', reason: 'the first' }),
        'hook_unavailable',
      ]);
      expect(journal.of('call_ended').map(({ status }) => status)).toEqual(Array(4).fill('denied'));
    } finally {
      clearInterval(beats);
      answering.unsubscribe();
      const leaving = JSON.stringify({ v: 1, state: 'gone' });
      bare.publish(subjects.heartbeat('hooks', 'default', name, 'rogue'), leaving);
      names.add(name);
    }
  });
});

test('of a manifest: its tools run, a blocked prompt ends cox run with 5, and errors in the file name the line', async () => {
  const folder = await scratchFolder('manifest');
  const stateDir = await scratchFolder('state');
  await writeFile(
    join(folder, 'policy.js'),
    `export const rejectSecrets = ({ prompt }) => (/sk-/.test(prompt) ? { block: true, reason: 'a secret' } : true);`,
  );
  await writeFile(
    join(folder, 'stock.js'),
    `export default { name: 'stock', description: 'x', inputSchema: { type: 'object' }, execute: () => 'seven' };`,
  );
  await writeFile(
    join(folder, 'coxswain.yaml'),
    `hooks:\n  - event: user_prompt_submit\n    handler: ./policy.js#rejectSecrets\ntools: [{ handler: ./stock.js }]\n`,
  );
  const model = await scripted([{ calls: [{ tool: 'stock' }] }, done]);
  const run = (prompt: string) =>
    cox(
      ['run', prompt, '--model', model, '--allow', 'stock', '--json', '--state-dir', stateDir].concat(
        '--manifest',
        'coxswain.yaml',
      ),
      { cwd: folder, env: { INIT_CWD: folder } },
    );
  const blocked = await run('my key is sk-123');
  expect([blocked.code, blocked.told]).toEqual([5, expect.stringContaining('using the hooks of')]);
  const passed = await run('hello');
  expect([passed.code, passed.stdout]).toEqual([0, expect.stringMatching(/seven(.|\n)*Done\./)]);

  const listed = await cox(['hook', 'list', '--state-dir', stateDir], { cwd: folder });
  expect([listed.code, listed.stdout, listed.stderr]).toEqual([0, '', expect.stringContaining('no hook service')]);

  await writeFile(
    join(folder, 'coxswain.yaml'),
    'hooks:\n  - event: user_prompt_submit\n    handler: ./policy.js#rejectSecret\n',
  );
  const refused = await run('hello');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`manifest_invalid: ${join(folder, 'coxswain.yaml')}:3:14: hooks[0].handler: `);
  expect(refused.stderr).not.toContain('using the hooks of');
  expect(refused.stderr).toContain('has no function rejectSecret; it exports rejectSecrets');
});
