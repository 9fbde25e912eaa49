/** `cox mcp`: another agent starts, watches, steers, approves and cancels sessions, by the official MCP client over stdio. */
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type McpUnderTest, rawMcp, startMcp } from './kit/mcp-client.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted as scriptedAnywhere } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
let mcp: McpUnderTest;
let root: string;
let env: NodeJS.ProcessEnv;

/** Writes a script into the folder of the server: its client may name no other. */
async function scripted(...args: Parameters<typeof scriptedAnywhere>): Promise<string> {
  const path = (await scriptedAnywhere(...args)).slice('scripted/'.length);
  const here = join(root, `${basename(dirname(path))}.yaml`);
  await copyFile(path, here);
  return `scripted/${here}`;
}

beforeAll(async () => {
  root = await scratchFolder('mcp');
  env = { NATS_URL: fixture.bus.natsUrl, INIT_CWD: root };
  mcp = await startMcp({ env });
});
afterAll(() => mcp?.close());

/** A session of the given answers; returns its id. */
async function started(turns: readonly ScriptTurn[], more: object = {}): Promise<string> {
  const { session_id } = await mcp.use('start_session', { prompt: 'go', model: await scripted(turns), ...more });
  return session_id as string;
}

/** A session whose call goes on until a file is there. */
async function working(name: string): Promise<{ readonly id: string; readonly letGo: () => Promise<void> }> {
  const id = await started(
    [
      { calls: [{ tool: 'run_command', args: { command: `until [ -e ${name} ]; do sleep 0.05; done` } }] },
      { text: 'Done.' },
      { text: 'And that.' },
    ],
    { permissions: { rules: [{ tool: '*', action: 'allow' }] } },
  );
  await until('the call', async () => ((await mcp.use('get_session', { session_id: id })).calls as []).length > 0);
  return { id, letGo: () => writeFile(join(root, name), '') };
}

const asking: ScriptTurn[] = [
  { calls: [{ tool: 'write_file', args: { path: 'note.txt', content: 'hello' } }] },
  { text: 'Written.' },
];

describe('what it offers', () => {
  test('tools with schemas of what they take and give, and hints of what they do', async () => {
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'start_session',
      'wait_for',
      'get_result',
      'get_session',
      'read_events',
      'list_sessions',
      'get_tree',
      'steer',
      'remind',
      'follow_up',
      'revoke',
      'replace',
      'list_approvals',
      'approve',
      'deny',
      'cancel',
      'cancel_call',
      'suspend',
      'resume',
      'signal',
      'fork_session',
      'list_personas',
    ]);
    for (const { name, description, inputSchema, outputSchema } of tools) {
      expect(description, name).toMatch(/\w/);
      expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema, name).toMatchObject({ type: 'object' });
    }
    const hints = (wanted: string) => tools.find(({ name }) => name === wanted)?.annotations;
    expect(hints('wait_for')).toMatchObject({ readOnlyHint: true, destructiveHint: false });
    expect(hints('steer')).toMatchObject({ readOnlyHint: false, destructiveHint: false });
    expect(hints('cancel')).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true });
    expect(mcp.client.getServerVersion()?.name).toBe('coxswain');
    expect(mcp.client.getInstructions()).toContain('start_session');
  });

  test('a tool that is not there is an error of the protocol, which says what there is', async () => {
    await expect(mcp.client.callTool({ name: 'start_sesion', arguments: {} })).rejects.toThrow(
      /"start_sesion" is not a tool of this server; the tools are start_session, /,
    );
  });

  test('a server that was started to read alone offers no more', async () => {
    const reader = await startMcp({ env, args: ['--scope', 'read'] });
    try {
      const names = (await reader.client.listTools()).tools.map(({ name }) => name);
      expect(names).toContain('read_events');
      expect(names).not.toContain('steer');
      await expect(reader.client.callTool({ name: 'approve', arguments: {} })).rejects.toThrow(
        /needs the scope approve/,
      );
    } finally {
      await reader.close();
    }
  });
});

describe('a server that may start and not approve', () => {
  test('starts nothing that allows its own calls: they wait for somebody else', async () => {
    const runner = await startMcp({ env, args: ['--scope', 'read,run'] });
    try {
      const begun = { prompt: 'go', model: await scripted(asking) };
      for (const [permissions, field] of [
        [{ rules: [{ tool: '*', action: 'allow' }] }, 'permissions.rules.0.action'],
        [{ default: 'allow' }, 'permissions.default'],
      ] as const)
        expect(
          await runner.client.callTool({ name: 'start_session', arguments: { ...begun, permissions } }),
        ).toMatchObject({ isError: true, _meta: { 'coxswain/error': { code: 'scope_missing', field } } });
      const { session_id } = await runner.use('start_session', begun);
      expect(await runner.use('wait_for', { session_id })).toMatchObject({ reached: 'approval' });
      await mcp.use('cancel', { session_id });
    } finally {
      await runner.close();
    }
  });
});

describe('a session from its start to its result', () => {
  test('starts, is waited for, gives its answer, and goes on with more', async () => {
    const id = await started([{ text: 'Forty-two.' }, { text: 'Because.' }]);
    const ended = await mcp.use('wait_for', { session_id: id, until: ['ended'] });
    expect(ended).toMatchObject({
      reached: 'ended',
      state: 'stopped',
      result: { text: 'Forty-two.', stop_reason: 'end_turn' },
    });
    const more = await mcp.use('follow_up', { session_id: id, body: 'Why?' });
    expect(more).toMatchObject({ became: 'prompt', pending_for_next_run: false });
    const again = await mcp.use('wait_for', { session_id: id, after: more.n });
    expect(again).toMatchObject({ reached: 'ended', result: { text: 'Because.', turns: 1 } });
    expect(await mcp.use('get_result', { session_id: id })).toMatchObject({
      result: { text: 'Because.' },
      stop_reason: 'end_turn',
    });
    const { sessions } = await mcp.use('list_sessions', { limit: 100 });
    expect(sessions).toContainEqual(
      expect.objectContaining({ session_id: id, state: 'stopped', stop_reason: 'end_turn' }),
    );
  });

  test('the journal names the agent that acts', async () => {
    const id = await started([{ text: 'Hello.' }]);
    await mcp.use('wait_for', { session_id: id });
    const { events } = await mcp.use('read_events', { session_id: id });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'prompt_shown', text: 'go', actor: 'mcp:test-agent' }),
    );
  });

  test('its events come page by page, each once', async () => {
    const id = await started([
      ...Array.from({ length: 6 }, () => ({ text: 'I look.', calls: [{ tool: 'list_files', args: { path: '.' } }] })),
      { text: 'Looked.' },
    ]);
    await mcp.use('wait_for', { session_id: id });
    const seen: { n?: number; type: string }[] = [];
    let pages = 0;
    for (let from = 1, more = true; more; pages++) {
      const page = await mcp.use('read_events', { session_id: id, from, limit: 4 });
      seen.push(...(page.events as typeof seen));
      from = page.next_from as number;
      more = page.more as boolean;
    }
    expect(pages).toBeGreaterThan(3);
    const whole = await mcp.use('read_events', { session_id: id, limit: 200 });
    expect(whole.more).toBe(false);
    expect(seen.map(({ n, type }) => `${n} ${type}`)).toEqual(
      (whole.events as typeof seen).map(({ n, type }) => `${n} ${type}`),
    );
    expect(seen.filter(({ type }) => type === 'call_ended')).toHaveLength(6);
    expect(await mcp.use('read_events', { session_id: id, from: 9_999 })).toMatchObject({ events: [], more: false });
  });

  test('long texts are cut, and say so', async () => {
    const id = await started([{ text: 'x'.repeat(120_000) }]);
    const { result } = await mcp.use('wait_for', { session_id: id });
    const { text } = result as { text: string };
    expect(text.length).toBeLessThan(50_000);
    expect(text).toMatch(/… \(\d+ more characters\)$/);
    const page = await mcp.use('read_events', { session_id: id });
    expect(JSON.stringify(page).length).toBeLessThan(60_000);
  });
});

describe('steering', () => {
  test('is told when its model has been shown it, at which seam', async () => {
    const { id, letGo } = await working('steered');
    const delivered = mcp.use('steer', { session_id: id, body: 'Only the tests.', wait: 'delivered' });
    await until('the steer', async () => ((await mcp.use('get_session', { session_id: id })).pending as []).length > 0);
    expect(await mcp.use('get_session', { session_id: id })).toMatchObject({
      state: 'function_execute',
      pending: [{ kind: 'steer', body: 'Only the tests.', mode: 'finish_step', actor: 'mcp:test-agent' }],
    });
    await letGo();
    expect(await delivered).toMatchObject({ stage: 'delivered', seam: 'post_tool_dispatch' });
  });

  test('an interrupt that preempts ends the call that runs', async () => {
    const { id } = await working('never');
    await mcp.use('steer', { session_id: id, body: 'Stop.', mode: 'interrupt_immediate', preempt: true });
    await mcp.use('wait_for', { session_id: id });
    const { events } = await mcp.use('read_events', { session_id: id, limit: 200 });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'call_ended', tool: 'run_command', status: 'cancelled' }),
    );
  });

  test('what is to be done afterwards is queued behind the work', async () => {
    const { id, letGo } = await working('queued');
    expect(await mcp.use('follow_up', { session_id: id, body: 'Then the rest.' })).toMatchObject({
      became: 'followup',
    });
    await letGo();
    expect(await mcp.use('wait_for', { session_id: id })).toMatchObject({ result: { text: 'And that.' } });
  });

  test('one call is cancelled, and the session goes on', async () => {
    const { id } = await working('nobody');
    const [call] = (await mcp.use('get_session', { session_id: id })).calls as { call_id: string }[];
    const cancelled = await mcp.use('cancel_call', { session_id: id, call_id: call?.call_id, reason: 'too slow' });
    expect(cancelled).toMatchObject({ outcome: 'cancelled', tool: 'run_command' });
    expect(await mcp.use('wait_for', { session_id: id })).toMatchObject({ result: { text: 'Done.' } });
  });

  test('a session is cancelled, suspended and resumed', async () => {
    const { id, letGo } = await working('parked');
    await mcp.use('suspend', { session_id: id, reason: 'lunch' });
    await letGo();
    expect(await mcp.use('wait_for', { session_id: id, until: ['suspended'] })).toMatchObject({ reached: 'suspended' });
    expect((await mcp.use('get_session', { session_id: id })).suspended).toMatchObject({ reason: 'lunch' });
    await mcp.use('resume', { session_id: id });
    expect(await mcp.use('wait_for', { session_id: id, until: ['ended'] })).toMatchObject({
      result: { text: 'Done.' },
    });
    const other = await working('not this');
    await mcp.use('cancel', { session_id: other.id, reason: 'enough' });
    expect(await mcp.use('wait_for', { session_id: other.id })).toMatchObject({ result: { stop_reason: 'cancelled' } });
    expect(await mcp.refused('resume', { session_id: other.id })).toMatchObject({ code: 'not_running' });
  });
});

describe('approvals', () => {
  test('a wait ends where a call waits for a decision; approved, it runs', async () => {
    const id = await started(asking);
    const waits = await mcp.use('wait_for', { session_id: id });
    expect(waits).toMatchObject({
      reached: 'approval',
      result: null,
      approvals: [{ tool: 'write_file', args: { path: 'note.txt' } }],
    });
    const [approval] = waits.approvals as { call_id: string }[];
    const { approvals } = await mcp.use('list_approvals');
    expect(approvals).toContainEqual(expect.objectContaining({ session_id: id, call_id: approval?.call_id }));
    expect(await mcp.use('list_approvals', { session_id: id })).toMatchObject({
      approvals: [{ call_id: approval?.call_id }],
      more: 0,
    });
    await mcp.use('approve', { session_id: id, call_id: approval?.call_id });
    expect(await mcp.use('wait_for', { session_id: id, until: ['ended'] })).toMatchObject({
      result: { text: 'Written.' },
    });
    expect(await mcp.refused('deny', { session_id: id, call_id: approval?.call_id })).toMatchObject({
      code: 'not_pending',
    });
  });

  test('denied, its model is told why', async () => {
    const id = await started(asking);
    const { approvals } = await mcp.use('wait_for', { session_id: id });
    const [{ call_id }] = approvals as [{ call_id: string }];
    await mcp.use('deny', { session_id: id, call_id, reason: 'not today' });
    await mcp.use('wait_for', { session_id: id, until: ['ended'] });
    const { events } = await mcp.use('read_events', { session_id: id, limit: 200 });
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'approval_settled',
        decision: 'deny',
        by: 'mcp:test-agent',
        reason: 'not today',
      }),
    );
    expect(events).toContainEqual(expect.objectContaining({ type: 'call_ended', status: 'denied' }));
  });
});

describe('waiting', () => {
  test('ends when its time is over, and says what the session does', async () => {
    const { id, letGo } = await working('later');
    expect(await mcp.use('wait_for', { session_id: id, timeout_ms: 1 })).toMatchObject({
      reached: null,
      state: 'function_execute',
      result: null,
    });
    await letGo();
    await mcp.use('wait_for', { session_id: id });
  });

  test('tells its progress to a client that asks for it', async () => {
    const { id, letGo } = await working('told');
    const told: string[] = [];
    const waiting = mcp.client.callTool({ name: 'wait_for', arguments: { session_id: id } }, undefined, {
      onprogress: ({ message }) => void told.push(message ?? ''),
      timeout: 45_000,
    });
    await until('the wait', async () => {
      await mcp.use('steer', { session_id: id, body: 'Still there?' });
      return told.length > 0;
    });
    await letGo();
    expect((await waiting).structuredContent).toMatchObject({ reached: 'ended' });
    expect(told.length).toBeGreaterThan(0);
  });

  test('is taken back by the client, and nothing in the session is', async () => {
    const { id, letGo } = await working('taken-back');
    const leaving = new AbortController();
    const waiting = mcp.client.callTool(
      { name: 'wait_for', arguments: { session_id: id, timeout_ms: 600_000 } },
      undefined,
      {
        signal: leaving.signal,
        onprogress: () => leaving.abort(),
      },
    );
    const rejected = expect(waiting).rejects.toThrow();
    await until('the end of the wait', async () => {
      if (!leaving.signal.aborted) await mcp.use('steer', { session_id: id, body: 'Still there?' });
      return leaving.signal.aborted;
    });
    await rejected;
    expect(await mcp.use('get_session', { session_id: id })).toMatchObject({ state: 'function_execute' });
    await letGo();
    expect(await mcp.use('wait_for', { session_id: id })).toMatchObject({ reached: 'ended' });
  });
});

describe('what waits', () => {
  test('is replaced and taken back before it is delivered; what was delivered is not', async () => {
    const { id: session_id, letGo } = await working('pending');
    const say = async (tool: string, body: string) => (await mcp.use(tool, { session_id, body })).command_id as string;
    const [first, second, later] = [
      await say('steer', 'Do this.'),
      await say('steer', 'Do that.'),
      await say('follow_up', 'Then this.'),
    ];
    await mcp.use('replace', { session_id, command_id: first, body: 'Do it well.' });
    await mcp.use('revoke', { session_id, command_id: second });
    await mcp.use('revoke', { session_id, command_id: later });
    const { pending } = await mcp.use('get_session', { session_id });
    expect(pending).toMatchObject([{ command_id: first, body: 'Do it well.' }]);
    expect(await mcp.refused('revoke', { session_id, command_id: second })).toMatchObject({ code: 'already_revoked' });
    await letGo();
    expect(await mcp.use('wait_for', { session_id })).toMatchObject({ reached: 'ended' });
    expect(await mcp.refused('revoke', { session_id, command_id: first })).toMatchObject({ code: 'already_delivered' });
    expect(await mcp.refused('revoke', { session_id, command_id: 'never-sent' })).toMatchObject({
      code: 'unknown_command_id',
    });
    const said = await injected(session_id);
    expect(said).toEqual(['Do it well.']);
  });

  test('a reminder is shown as one, and not as what somebody has said', async () => {
    const { id: session_id, letGo } = await working('reminded');
    await mcp.use('remind', { session_id, body: 'The build is red.', ttl_turns: 1 });
    const { pending } = await mcp.use('get_session', { session_id });
    expect(pending).toMatchObject([{ kind: 'remind', body: 'The build is red.' }]);
    expect(await mcp.refused('remind', { session_id, body: 'x', preempt: true })).toMatchObject({ field: 'preempt' });
    await letGo();
    await mcp.use('wait_for', { session_id });
    const { events } = await mcp.use('read_events', { session_id });
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'seam_delivered',
        injections: [expect.objectContaining({ origin: 'remind', text: 'The build is red.' })],
      }),
    );
  });

  test('a session that is suspended until a signal goes on when it is given that', async () => {
    const { id: session_id, letGo } = await working('signalled');
    await mcp.use('suspend', { session_id, until_signal: 'green' });
    await letGo();
    expect(await mcp.use('wait_for', { session_id })).toMatchObject({ reached: 'suspended' });
    expect(await mcp.use('get_session', { session_id })).toMatchObject({ suspended: { signal: 'green' } });
    await mcp.use('signal', { session_id, name: 'amber' });
    expect(await mcp.use('get_session', { session_id })).toMatchObject({ state: 'suspended' });
    await mcp.use('signal', { session_id, name: 'green', data: { build: 7 } });
    expect(await mcp.use('wait_for', { session_id, until: ['ended'] })).toMatchObject({ reached: 'ended' });
  });
});

describe('beyond one session', () => {
  test('a fork has the past up to a record and goes another way; the other is left as it is', async () => {
    const session_id = await started([{ text: 'One.' }, { text: 'Two.' }]);
    const { n } = await mcp.use('wait_for', { session_id });
    const forked = await mcp.use('fork_session', { session_id, prompt: 'And now?', fork_id: `${session_id}-fork` });
    expect(forked).toMatchObject({ session_id: `${session_id}-fork`, forked_at: n });
    expect(await mcp.use('wait_for', { session_id: forked.session_id, after: n })).toMatchObject({
      result: { text: 'Two.' },
    });
    expect(await mcp.use('get_result', { session_id })).toMatchObject({ n, result: { text: 'One.' } });
    expect(await mcp.refused('fork_session', { session_id, at: 10_000 })).toMatchObject({ field: 'at' });
    expect(await mcp.refused('fork_session', { session_id, model: 'nobody' })).toMatchObject({
      code: 'invalid_field',
      text: expect.stringContaining('model'),
    });
  });

  test('the tree of a session has those that it has delegated to, and what they wait for', async () => {
    await mkdir(join(root, 'personas'), { recursive: true });
    const model = await scripted([
      { match: 'All of it', calls: [{ tool: 'delegate', args: { persona: 'chief', prompt: 'Your part.' } }] },
      { match: 'All of it', text: 'All is done.' },
      { match: 'Your part', calls: [{ tool: 'write_file', args: { path: 'part.txt', content: 'x' } }] },
      { match: 'Your part', text: 'My part is done.' },
    ]);
    const file = join(root, 'personas/chief.yaml');
    await writeFile(file, `name: chief\nmodel: ${model}\npermissions: {rules: [{tool: delegate, action: allow}]}\n`);
    const { session_id } = await mcp.use('start_session', { prompt: 'All of it', persona: 'chief' });
    type Nodes = readonly { readonly session_id: string; readonly approvals: number }[];
    const tree = async () => (await mcp.use('get_tree', { session_id })).sessions as Nodes;
    await until('the approval below', async () => (await tree()).some(({ approvals }) => approvals === 1));
    expect(await tree()).toMatchObject([
      { session_id, parent: null, call_id: null, persona: 'chief', approvals: 0 },
      { parent: session_id, call_id: 'c1_1', persona: 'chief', state: 'function_awaiting_approval', approvals: 1 },
    ]);
    const child = (await tree())[1]?.session_id;
    await mcp.use('approve', { session_id: child, call_id: 'c1_1' });
    expect(await mcp.use('wait_for', { session_id, until: ['ended'] })).toMatchObject({
      result: { text: 'All is done.' },
    });
    expect(await mcp.use('get_tree', { session_id: child })).toMatchObject({ above: session_id });
    expect(await mcp.refused('get_tree', { session_id: 'nobody' })).toMatchObject({ code: 'session_not_found' });
    await rm(file);
  });
});

describe('transcripts', () => {
  test('are resources: listed, newest first, and read by their address', async () => {
    const session_id = await started([
      { text: 'I look.', calls: [{ tool: 'list_files', args: { path: '.' } }] },
      { text: 'Nothing there.' },
    ]);
    await mcp.use('wait_for', { session_id });
    const { resourceTemplates } = await mcp.client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['coxswain://sessions/{session_id}']);
    const uri = `coxswain://sessions/${session_id}`;
    const { resources } = await mcp.client.listResources();
    expect(resources[0]).toMatchObject({ uri, name: session_id, title: 'assistant: end_turn' });
    const { contents } = await mcp.client.readResource({ uri });
    const [{ text = '', mimeType } = {}] = contents as { text?: string; mimeType?: string }[];
    expect(mimeType).toBe('text/markdown');
    const parts = [
      '## User',
      'go',
      '## Assistant',
      'I look.',
      '- called list_files',
      '- list_files: ok',
      'Nothing there.',
      'Run 1 ended: end_turn',
    ];
    expect(parts.map((part) => text.indexOf(part))).toEqual(
      parts.map((part) => text.indexOf(part)).sort((one, other) => one - other),
    );
    expect(text.indexOf(parts[0] as string)).toBeGreaterThan(0);
  });

  test('that are long are cut at their beginning, and say so', async () => {
    const long = 'word '.repeat(3_000);
    const session_id = await started([
      ...Array.from({ length: 25 }, (_, i) => ({ text: `${i}: ${long}`, calls: [{ tool: 'nothing_there' }] })),
      { text: 'The end of it.' },
    ]);
    await mcp.use('wait_for', { session_id });
    const { contents } = await mcp.client.readResource({ uri: `coxswain://sessions/${session_id}` });
    const [{ text = '' } = {}] = contents as { text?: string }[];
    expect(text).toContain('Earlier events are omitted');
    expect(text).toContain('The end of it.');
    expect(text).not.toContain('## User');
    expect(text.length).toBeLessThan(300 * 1024);
  });

  test('of what there is not are an error of the protocol', async () => {
    const read = (uri: string) => mcp.client.readResource({ uri });
    await expect(read('coxswain://sessions/nobody')).rejects.toMatchObject({ code: -32_002 });
    await expect(read('file:///etc/passwd')).rejects.toThrow(/resources have the form coxswain:\/\/sessions/);
    await expect(read('coxswain://sessions/../x')).rejects.toMatchObject({ code: -32_002 });
  });

  test('are not offered without the scope read', async () => {
    const runner = await startMcp({ env, args: ['--scope', 'run'] });
    try {
      expect(runner.client.getServerCapabilities()?.resources).toBeUndefined();
    } finally {
      await runner.close();
    }
  });
});

/** What a session was told beside its prompts, as its model was shown it. */
async function injected(session: string): Promise<string[]> {
  const { events } = await mcp.use('read_events', { session_id: session });
  const delivered = (events as { type: string; injections?: { text: string }[] }[]).filter(
    ({ type }) => type === 'seam_delivered',
  );
  return delivered.flatMap(({ injections = [] }) => injections.map(({ text }) => text));
}

describe('personas', () => {
  test('those of the folder are listed and work by name', async () => {
    await mkdir(join(root, 'personas'), { recursive: true });
    await writeFile(
      join(root, 'personas/reviewer.yaml'),
      `name: reviewer\ndescription: Reads changes.\nmodel: ${await scripted([{ text: 'Fine by me.' }])}\nprompt: You review.\n`,
    );
    await writeFile(join(root, 'personas/broken.yaml'), 'name: broken\nprompts: no\n');
    const { personas } = await mcp.use('list_personas');
    expect(personas).toEqual([
      expect.objectContaining({ name: 'reviewer', description: 'Reads changes.', source: 'folder', available: true }),
    ]);
    const { session_id } = await mcp.use('start_session', { prompt: 'Look.', persona: 'reviewer' });
    expect(await mcp.use('wait_for', { session_id })).toMatchObject({ result: { text: 'Fine by me.' } });
    expect(await mcp.use('get_session', { session_id })).toMatchObject({ persona: 'reviewer' });
    expect(await mcp.refused('start_session', { prompt: 'x', persona: 'broken' })).toMatchObject({
      code: 'persona_invalid',
      text: expect.stringContaining('unknown key "prompts"'),
    });
    // The client is not the user, and nobody can be asked here.
    await writeFile(join(root, 'personas/wild.yaml'), 'name: wild\npermissions: { default: allow }\n');
    expect(await mcp.refused('start_session', { prompt: 'x', persona: 'wild' })).toMatchObject({
      code: 'folder_not_trusted',
      text: expect.stringContaining('run cox trust'),
    });
  });
});

describe('bad input is an answer with a code, and names the argument', () => {
  test.each([
    ['start_session', {}, 'invalid_field', 'prompt', /prompt: is missing/],
    ['start_session', { prompt: 'x' }, 'invalid_field', 'model', /model: is missing: give provider\/name/],
    ['start_session', { prompt: 'x', promt: 'x' }, 'unknown_field', 'promt', /did you mean "prompt"/],
    ['start_session', { prompt: 'x', model: 'gpt' }, 'invalid_field', 'model', /model: /],
    [
      'start_session',
      { prompt: 'x', model: 'scripted//etc/passwd' },
      'invalid_field',
      'model',
      /its file must be inside /,
    ],
    [
      'start_session',
      { prompt: 'x', model: 'scripted/a', root: '/' },
      'invalid_field',
      'root',
      /root: must be inside /,
    ],
    ['start_session', { prompt: 'x', persona: '../x.yaml' }, 'invalid_field', 'persona', /a name is 1 to 64/],
    ['get_session', { session_id: 'a b' }, 'invalid_field', 'session_id', /session_id: /],
    ['get_session', { session_id: 'none' }, 'session_not_found', undefined, /there is no session none/],
    ['wait_for', { session_id: 'none' }, 'session_not_found', undefined, /there is no session none/],
    ['wait_for', { session_id: 'none', timeout_ms: 600_001 }, 'invalid_field', 'timeout_ms', /at most 600000/],
    ['wait_for', { session_id: 'none', until: ['done'] }, 'invalid_field', 'until.0', /one of ended, approval/],
    ['read_events', { session_id: 'none', limit: 0 }, 'invalid_field', 'limit', /at least 1/],
    ['steer', { session_id: 'none', body: 'x' }, 'session_not_found', undefined, /there is no session none/],
    ['steer', { session_id: 'none', body: ' ' }, 'invalid_field', 'body', /must not be empty/],
    ['steer', { session_id: 'none', body: 'x', mode: 'soon' }, 'invalid_field', 'mode', /mode: /],
    [
      'steer',
      { session_id: 'none', body: 'x', preempt: true },
      'invalid_field',
      'preempt',
      /requires the mode interrupt_immediate/,
    ],
    ['approve', { session_id: 'none', call_id: '' }, 'invalid_field', 'call_id', /must not be empty/],
    ['cancel', { session_id: 'none' }, 'session_not_found', undefined, /there is no session none/],
    ['list_sessions', { cursor: 'made up' }, 'invalid_field', undefined, /cursor/],
    ['list_personas', { all: true }, 'unknown_field', 'all', /list_personas takes no arguments/],
  ])('%s %j: %s', async (tool, args, code, field, words) => {
    const refused = await mcp.refused(tool, args);
    expect(refused).toMatchObject({ code });
    if (field !== undefined) expect(refused.field).toBe(field);
    expect(refused.text).toMatch(words);
    expect(refused.text.startsWith(`${code}: `)).toBe(true);
  });

  test('a session that is there is not started again', async () => {
    const id = await started([{ text: 'Once.' }]);
    await mcp.use('wait_for', { session_id: id });
    const again = { prompt: 'x', model: await scripted([{ text: 'Twice.' }]), session_id: id };
    expect(await mcp.refused('start_session', again)).toMatchObject({ code: 'session_exists' });
  });

  test('no more calls than a bound are worked on at once', async () => {
    const { id, letGo } = await working('many');
    const calls = Array.from({ length: 80 }, () =>
      mcp.client.callTool({ name: 'wait_for', arguments: { session_id: id } }, undefined, { timeout: 60_000 }),
    );
    const refused = await until('a refusal', () =>
      Promise.race(calls.map(async (one) => ((await one).isError ? await one : new Promise<never>(() => undefined)))),
    );
    expect(refused).toMatchObject({ content: [{ text: expect.stringMatching(/^too_many_queries: 64 calls/) }] });
    await letGo();
    const answered = await Promise.all(calls);
    expect(answered.filter(({ isError }) => !isError)).toHaveLength(64);
  });
});

describe('the pipe', () => {
  test('stdout has the protocol alone; what is no message is told on stderr and passed over', async () => {
    const child = rawMcp(env);
    const say = (message: object | string) =>
      child.process.stdin?.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
    say('{"jsonrpc": "2.0", ');
    say('hello?');
    say([]);
    say({ jsonrpc: '2.0', id: 9 });
    say({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '0' } },
    });
    say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    say({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'list_sessions', arguments: 'all' } });
    say({ jsonrpc: '2.0', id: 3, method: 'no/such' });
    say({ jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'list_sessions', arguments: { limit: 1 } } });
    await until('the answers', () => child.lines.length >= 4);
    const byId = new Map(child.json.map((message) => [message.id, message]));
    expect(byId.get(1)).toMatchObject({ result: { serverInfo: { name: 'coxswain' }, protocolVersion: '2025-06-18' } });
    expect(byId.get(2)).toMatchObject({ error: { code: expect.any(Number) } });
    expect(byId.get(3)).toMatchObject({ error: { code: -32601 } });
    expect(byId.get(4)).toMatchObject({ result: { structuredContent: { sessions: expect.any(Array) } } });
    child.process.stdin?.end();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.lines.every((line) => line.startsWith('{"'))).toBe(true);
    const told = child.stderr.split('\n').filter((line) => line.startsWith('the input of the client is invalid: '));
    expect(told.filter((line) => line.includes('a line is not JSON: '))).toHaveLength(2);
    expect(told.filter((line) => line.endsWith('a line is JSON, but not a JSON-RPC 2.0 message'))).toHaveLength(2);
  });

  test('a message over its bound ends the connection, and not the sessions', async () => {
    const { id, letGo } = await working('flooded');
    const child = rawMcp(env);
    child.process.stdin?.write(`{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(2 * 1024 * 1024)}`);
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.stdout).toBe('');
    expect(child.stderr).toContain('a message has more than 1048576 bytes; the server ends, its sessions continue');
    await letGo();
    expect(await mcp.use('wait_for', { session_id: id })).toMatchObject({ reached: 'ended' });
  });

  test('flags that are wrong end it with 2 and a word', async () => {
    const child = rawMcp(env, ['--scope', 'read,all']);
    expect(await child.exited).toEqual({ code: 2, signal: null });
    expect(child.stderr).toContain('--scope takes read, run, steer, approve, not "all"');
    expect(child.stdout).toBe('');
  });
});

test('sessions live on when the client has gone, also in the middle of a call', async () => {
  const other = await startMcp({ env });
  const model = await scripted([
    { calls: [{ tool: 'run_command', args: { command: 'until [ -e gone ]; do sleep 0.05; done' } }] },
    { text: 'Alone.' },
  ]);
  const permissions = { rules: [{ tool: '*', action: 'allow' }] };
  const { session_id } = await other.use('start_session', { prompt: 'go', model, permissions });
  const waiting = other.client.callTool({ name: 'wait_for', arguments: { session_id } }).catch(() => 'left');
  await other.close();
  expect(await waiting).toBe('left');
  await writeFile(join(root, 'gone'), '');
  expect(await mcp.use('wait_for', { session_id })).toMatchObject({ result: { text: 'Alone.' } });
});
