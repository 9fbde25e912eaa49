/** AG-UI over the gateway, by the protocol's own client, and by requests that no client would send. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BaseEvent, EventType, HttpAgent, type RunAgentInput } from '@ag-ui/client';
import { newToken, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { clientOf, type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { servePersona } from './kit/persona-service.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
let gateway: GatewayUnderTest;
let root: string;
let threads = 0;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
  root = await scratchFolder('agui');
});
afterAll(() => gateway?.stop());

type Told = BaseEvent & Record<string, unknown>;

/** An agent on a thread of its own, and the events that it was sent. */
function agentOn(threadId = `thread-${++threads}`, path = '/v1/agui') {
  const agent = new HttpAgent({
    url: `${gateway.url}${path}`,
    headers: { authorization: `Bearer ${gateway.token}` },
    threadId,
  });
  const told: Told[] = [];
  agent.subscribe({ onEvent: ({ event }) => void told.push(event as Told) });
  return { agent, told, threadId };
}

const user = (content: string, id: string = crypto.randomUUID()) => ({ id, role: 'user' as const, content });
const start = async (turns: readonly ScriptTurn[], rules: readonly object[] = []) => ({
  start: { model: await scripted(turns), root, permissions: { rules } },
});
const allowed = [{ tool: '*', action: 'allow' }];
const typesOf = (told: readonly Told[]) => told.map(({ type }) => type);
const waiting = (file: string): ScriptTurn[] => [
  { text: 'I wait.', calls: [{ tool: 'run_command', args: { command: `until [ -e ${file} ]; do sleep 0.05; done` } }] },
  { text: 'Waited.' },
  { text: 'And that.' },
];
const asking: ScriptTurn[] = [
  { text: 'I write.', calls: [{ tool: 'write_file', args: { path: 'note.txt', content: 'hello' } }] },
  { text: 'Done with it.' },
];
const atWork = (threadId: string) =>
  until('the call', async () => {
    const { body } = await gateway.get(`/v1/sessions/${threadId}`);
    return Array.isArray(body.calls) && body.calls.length > 0;
  });

describe('a run', () => {
  test('is the session’s, from its start to its answer', async () => {
    const { agent, told, threadId } = agentOn();
    agent.addMessage(user('Say it.'));
    const { result } = await agent.runAgent({
      forwardedProps: await start([{ reasoning: 'Hm.', text: 'Forty-two.' }]),
    });
    expect(result).toMatchObject({ stop_reason: 'end_turn', text: 'Forty-two.', turns: 1 });
    expect(agent.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Say it.'],
      ['reasoning', 'Hm.'],
      ['assistant', 'Forty-two.'],
    ]);
    const types = typesOf(told);
    expect(types[0]).toBe(EventType.RUN_STARTED);
    expect(types.at(-1)).toBe(EventType.RUN_FINISHED);
    for (const type of [
      EventType.STATE_SNAPSHOT,
      EventType.STATE_DELTA,
      EventType.STEP_STARTED,
      EventType.STEP_FINISHED,
      EventType.REASONING_MESSAGE_CONTENT,
      EventType.TEXT_MESSAGE_START,
      EventType.TEXT_MESSAGE_END,
    ])
      expect(types).toContain(type);
    expect(told.find(({ name }) => name === 'coxswain.receipt')?.value).toMatchObject({
      verb: 'start',
      stage: 'accepted',
    });
    const { body } = await gateway.get(`/v1/sessions/${threadId}`);
    expect(agent.state).toMatchObject({ session_id: threadId, state: 'stopped', stop_reason: 'end_turn', n: body.n });
  });

  test('of a new session tells its first answer as it streams', async () => {
    const { agent, told } = agentOn();
    agent.addMessage(user('Say it.'));
    const { result } = await agent.runAgent({
      forwardedProps: await start([{ text: 'one two three four five six', chunk_ms: 200 }]),
    });
    expect(result).toMatchObject({ text: 'one two three four five six' });
    expect(typesOf(told).filter((type) => type === EventType.TEXT_MESSAGE_CONTENT).length).toBeGreaterThan(1);
  });

  test('goes on with the next message, in the same session', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('One.'));
    await agent.runAgent({ forwardedProps: await start([{ text: 'First.' }, { text: 'Second.' }]) });
    agent.addMessage(user('Two.'));
    expect(await agent.runAgent()).toMatchObject({ result: { text: 'Second.' } });
    expect(agent.messages.map(({ content }) => content)).toEqual(['One.', 'First.', 'Two.', 'Second.']);
    expect((await gateway.get(`/v1/sessions/${threadId}`)).body).toMatchObject({ run: 2 });
  });

  test('has the calls with their arguments and results', async () => {
    const { agent } = agentOn();
    agent.addMessage(user('Look.'));
    await agent.runAgent({
      forwardedProps: await start(
        [{ calls: [{ tool: 'run_command', args: { command: 'echo found' } }] }, { text: 'Yes.' }],
        allowed,
      ),
    });
    const [call] = agent.messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));
    expect(JSON.parse(call?.function.arguments ?? '')).toEqual({ command: 'echo found' });
    const result = agent.messages.find((message) => message.role === 'tool');
    expect(result).toMatchObject({ toolCallId: call?.id, content: expect.stringContaining('found') });
  });

  test('of a thread whose id can be no session’s is of one that is made of it', async () => {
    const thread = 'a thread: with / everything';
    const { agent } = agentOn(thread);
    agent.addMessage(user('Hello.'));
    await agent.runAgent({ forwardedProps: await start([{ text: 'Hi.' }]) });
    const { session_id } = agent.state as { session_id: string };
    expect(session_id).toMatch(/^agui-[A-Za-z0-9_-]{32}$/);
    expect((await gateway.get(`/v1/sessions/${session_id}`)).body).toMatchObject({ state: 'stopped' });
  });

  test('takes context along with what is said, and does not show it as said', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('What page is it?'));
    await agent.runAgent({
      forwardedProps: await start([{ match: 'page: 7', text: 'Seven.' }, { text: 'None.' }]),
      context: [{ description: 'page', value: '7' }],
    });
    const again = agentOn(threadId);
    await again.agent.runAgent();
    expect(again.agent.messages.map(({ content }) => content)).toEqual(['What page is it?', 'Seven.']);
  });

  test('that is cancelled ends as cancelled, one that fails with its code', async () => {
    const { agent, told, threadId } = agentOn();
    agent.addMessage(user('Wait.'));
    const run = agent.runAgent({ forwardedProps: await start(waiting('never'), allowed) });
    await atWork(threadId);
    await gateway.post(`/v1/sessions/${threadId}/cancel`, {});
    await run;
    expect(told.at(-1)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: 'cancelled' } });
    const failing = agentOn();
    failing.agent.addMessage(user('Fail.'));
    await failing.agent.runAgent({ forwardedProps: await start([{ fail: { kind: 'error' } }]) }).catch(() => undefined);
    expect(failing.told.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: 'model_request_failed' });
  });
});

describe('interrupts', () => {
  test('an approval ends the run; the answer goes on with it', async () => {
    const { agent, told } = agentOn();
    agent.addMessage(user('Write.'));
    await agent.runAgent({ forwardedProps: await start(asking) });
    expect(agent.pendingInterrupts).toMatchObject([
      { reason: 'tool_approval', message: 'May write_file run?', metadata: { tool: 'write_file' } },
    ]);
    const [interrupt] = agent.pendingInterrupts;
    expect(agent.state).toMatchObject({
      state: 'function_awaiting_approval',
      approvals: [{ call_id: interrupt?.toolCallId }],
    });
    const { result } = await agent.runAgent({
      resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload: { approved: true } }],
    });
    expect(result).toMatchObject({ text: 'Done with it.' });
    expect(agent.pendingInterrupts).toEqual([]);
    expect(agent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(told.filter(({ type }) => type === EventType.TOOL_CALL_START)).toHaveLength(1);
  });

  test('refused, and left unanswered with something else said instead', async () => {
    const denied = agentOn();
    denied.agent.addMessage(user('Write.'));
    await denied.agent.runAgent({ forwardedProps: await start(asking) });
    const id = () => denied.agent.pendingInterrupts[0]?.id ?? '';
    await denied.agent.runAgent({
      resume: [{ interruptId: id(), status: 'resolved', payload: { approved: false, reason: 'no' } }],
    });
    expect(denied.told.find(({ type }) => type === EventType.TOOL_CALL_RESULT)).toMatchObject({
      metadata: { status: 'denied' },
    });
    const left = agentOn();
    left.agent.addMessage(user('Write.'));
    await left.agent.runAgent({ forwardedProps: await start([...asking, { text: 'Something else.' }]) });
    left.agent.addMessage(user('Something else, then.'));
    const { result } = await left.agent.runAgent({
      resume: [{ interruptId: left.agent.pendingInterrupts[0]?.id ?? '', status: 'cancelled' }],
    });
    expect(result).toMatchObject({ text: 'Something else.' });
  });

  test('what somebody else has decided is told, and the run goes on', async () => {
    const { agent, told, threadId } = agentOn();
    agent.addMessage(user('Write.'));
    await agent.runAgent({ forwardedProps: await start(asking) });
    const [{ id = '', toolCallId = '' } = {}] = agent.pendingInterrupts;
    await gateway.post(`/v1/sessions/${threadId}/approvals/${toolCallId}`, { decision: 'allow' });
    await until('the end', async () => (await gateway.get(`/v1/sessions/${threadId}`)).body.state === 'stopped');
    await agent.runAgent({ resume: [{ interruptId: id, status: 'resolved', payload: { approved: true } }] });
    expect(told.findLast(({ name }) => name === 'coxswain.receipt')?.value).toMatchObject({
      stage: 'rejected',
      verb: 'approve',
    });
    expect(agent.messages.at(-1)).toMatchObject({ content: 'Done with it.' });
  });

  test('one that never was ends the run with an error, and sends the session nothing', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('Write.'));
    await agent.runAgent({ forwardedProps: await start(asking) });
    const [{ id = '' } = {}] = agent.pendingInterrupts;
    const resume = ['approval:c9_9', 'suspended', id].map((interruptId) => ({
      ...{ interruptId, status: 'resolved' as const },
      ...(interruptId === 'suspended' ? {} : { payload: { approved: true } }),
    }));
    const answered = (entries: typeof resume) =>
      eventsOf(inputOf(threadId, { resume: entries, messages: [user('And this.')] }));
    const { n } = (await gateway.get(`/v1/sessions/${threadId}`)).body;
    expect(await answered(resume)).toMatchObject([
      { type: EventType.RUN_STARTED, threadId },
      { type: EventType.RUN_ERROR, code: 'call_unknown', message: expect.stringContaining('"approval:c9_9"') },
    ]);
    expect((await answered(resume.slice(1, 2))).at(-1)).toMatchObject({
      ...{ type: EventType.RUN_ERROR, code: 'not_suspended' },
    });
    expect((await gateway.get(`/v1/sessions/${threadId}`)).body).toMatchObject({ n, approvals: [{ call_id: 'c1_1' }] });
  });

  test('another answer by the same run is another decision, and comes too late', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('Write.'));
    await agent.runAgent({ forwardedProps: await start(asking) });
    const [{ id: interruptId = '' } = {}] = agent.pendingInterrupts;
    const answered = async (approved: boolean) => {
      const resume = [{ interruptId, status: 'resolved' as const, payload: { approved } }];
      const told = await eventsOf({ ...inputOf(threadId, { resume }), runId: 'the-same' });
      return told.find(({ name }) => name === 'coxswain.receipt')?.value;
    };
    expect(await answered(true)).toMatchObject({ verb: 'approve', stage: 'accepted' });
    expect(await answered(false)).toMatchObject({ verb: 'approve', stage: 'rejected', duplicate: false });
  });

  test('a suspended session is one, too, and wakes by its answer', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('Wait.'));
    const run = agent.runAgent({ forwardedProps: await start(waiting('woken'), allowed) });
    await atWork(threadId);
    await gateway.post(`/v1/sessions/${threadId}/suspend?wait=accepted`, { reason: 'lunch' });
    await writeFile(join(root, 'woken'), '');
    await run;
    expect(agent.pendingInterrupts).toMatchObject([{ id: 'suspended', reason: 'suspended', message: 'lunch' }]);
    const { result } = await agent.runAgent({ resume: [{ interruptId: 'suspended', status: 'resolved' }] });
    expect(result).toMatchObject({ text: 'Waited.' });
  });
});

describe('a session that works', () => {
  test('has both of two first messages that come at once, and each again as what it was', async () => {
    const threadId = `thread-${++threads}`;
    const forwardedProps = await start([{ text: 'First.', chunk_ms: 300 }, { text: 'Second.' }, { text: 'Third.' }]);
    const ask = (content: string) => ({
      content,
      body: inputOf(threadId, { messages: [user(content)], forwardedProps }),
    });
    const asked = [ask('One.'), ask('Two.')];
    const answered = () => Promise.all(asked.map(({ body }) => gateway.post('/v1/agui', body)));
    expect((await answered()).map(({ status }) => status)).toEqual([200, 200]);
    const { agent } = agentOn(threadId);
    const saidAndHeard = async () => {
      await agent.runAgent();
      return agent.messages.map(({ content }) => content);
    };
    const all = await saidAndHeard();
    expect([...all].sort()).toEqual(['First.', 'One.', 'Second.', 'Two.']);
    expect((await answered()).map(({ status }) => status)).toEqual([200, 200]);
    expect(await saidAndHeard()).toEqual(all);
  });

  test('is steered by a message, which is delivered where its mode says', async () => {
    const first = agentOn();
    first.agent.addMessage(user('Wait.'));
    const run = first.agent.runAgent({ forwardedProps: await start(waiting('steered'), allowed) });
    await atWork(first.threadId);
    const second = agentOn(first.threadId);
    second.agent.addMessage(user('Only the tests.'));
    const steering = second.agent.runAgent({ forwardedProps: { mode: 'finish_step' } });
    await until(
      'the steer',
      async () => ((await gateway.get(`/v1/sessions/${first.threadId}`)).body.pending as []).length > 0,
    );
    await writeFile(join(root, 'steered'), '');
    await Promise.all([run, steering]);
    // Whoever has not said it is told what was said.
    expect(first.agent.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Wait.'],
      ['assistant', 'I wait.'],
      ['tool', expect.any(String)],
      ['user', 'Only the tests.'],
      ['assistant', 'Waited.'],
    ]);
    expect(second.agent.messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
      'Only the tests.',
    ]);
    expect(second.told.find(({ name }) => name === 'coxswain.receipt')?.value).toMatchObject({ verb: 'steer' });
    expect(second.told.find(({ name }) => name === 'coxswain.seam_delivered')?.value).toMatchObject({
      seam: 'post_tool_dispatch',
    });
  });

  test('takes a message as a follow-up, and the run ends behind it', async () => {
    const first = agentOn();
    first.agent.addMessage(user('Wait.'));
    const run = first.agent.runAgent({ forwardedProps: await start(waiting('followed'), allowed) });
    await atWork(first.threadId);
    const second = agentOn(first.threadId);
    second.agent.addMessage(user('Then this.'));
    const following = second.agent.runAgent();
    await until(
      'the follow-up',
      async () => ((await gateway.get(`/v1/sessions/${first.threadId}`)).body.pending as []).length > 0,
    );
    await writeFile(join(root, 'followed'), '');
    await run;
    expect(await following).toMatchObject({ result: { text: 'And that.' } });
  });

  test('lives on when its client goes, and whoever comes back is told all of it', async () => {
    const gone = agentOn();
    gone.agent.addMessage(user('Wait.'));
    const run = gone.agent.runAgent({ forwardedProps: await start(waiting('left'), allowed) }).catch(() => undefined);
    await atWork(gone.threadId);
    gone.agent.abortRun();
    await run;
    const back = agentOn(gone.threadId);
    const attached = back.agent.runAgent();
    await until('the snapshot', () => back.told.some(({ type }) => type === EventType.MESSAGES_SNAPSHOT));
    await writeFile(join(root, 'left'), '');
    expect(await attached).toMatchObject({ result: { text: 'Waited.' } });
    expect(back.agent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  test('takes a message that is sent again once', async () => {
    const { threadId } = agentOn();
    const input = inputOf(threadId, {
      messages: [user('Once.', 'm1')],
      forwardedProps: await start([{ text: 'Once.' }, { text: 'Twice.' }]),
    });
    const one = await eventsOf(input);
    const two = await eventsOf(input);
    expect(one.at(-1)).toMatchObject({ result: { text: 'Once.' } });
    expect(two.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: { text: 'Once.' } });
    expect((await gateway.get(`/v1/sessions/${threadId}`)).body).toMatchObject({ run: 1 });
  });
});

const inputOf = (threadId: string, more: Partial<RunAgentInput> = {}): object => ({
  threadId,
  runId: crypto.randomUUID(),
  messages: [],
  ...more,
});

/** The events of a request, read without any client. */
async function eventsOf(input: object): Promise<Told[]> {
  const answer = await gateway.raw('/v1/agui', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
  });
  expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const text = await answer.text();
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, json]) => JSON.parse(json ?? '') as Told);
}

describe('what is wrong is a problem document, before there is a stream', () => {
  test.each<[string, object, number, string, string | undefined]>([
    ['no thread', { runId: 'r', messages: [] }, 400, 'invalid_field', 'threadId'],
    ['no messages', { threadId: 'none', runId: 'r' }, 400, 'invalid_field', 'messages'],
    ['a key that is not there', inputOf('none', { thread: 'x' } as object), 400, 'unknown_field', 'thread'],
    ['an unknown session and nothing said', inputOf('none'), 404, 'session_not_found', undefined],
    ['nothing in a message', inputOf('none', { messages: [user(' ')] }), 400, 'empty_body', 'messages[0].content'],
    [
      'a picture',
      inputOf('none', { messages: [{ id: 'm', role: 'user', content: [{ type: 'image' }] }] as never }),
      400,
      'invalid_field',
      'messages[0].content[0]',
    ],
    [
      'a mode that is none',
      inputOf('none', { messages: [user('x')], forwardedProps: { mode: 'soon' } }),
      400,
      'invalid_field',
      'forwardedProps.mode',
    ],
    [
      'a preempt without its mode',
      inputOf('none', { messages: [user('x')], forwardedProps: { preempt: true } }),
      400,
      'invalid_field',
      'forwardedProps.preempt',
    ],
    [
      'a prompt beside the message',
      inputOf('none', { messages: [user('x')], forwardedProps: { start: { prompt: 'y' } } }),
      400,
      'unknown_field',
      'forwardedProps.start.prompt',
    ],
    [
      'an actor of its own',
      inputOf('none', { messages: [user('x')], forwardedProps: { start: { actor: 'root' } } }),
      400,
      'unknown_field',
      'forwardedProps.start.actor',
    ],
    [
      'a limit that is none, of a start',
      inputOf('none', { messages: [user('x')], forwardedProps: { start: { limits: { max_turns: -1 } } } }),
      400,
      'invalid_field',
      'forwardedProps.start.limits.max_turns',
    ],
    [
      'a member that a start’s limits do not have',
      inputOf('none', { messages: [user('x')], forwardedProps: { start: { limits: { max_trns: 1 } } } }),
      400,
      'unknown_field',
      'forwardedProps.start.limits.max_trns',
    ],
    [
      'tools of the page',
      inputOf('none', { messages: [user('x')], tools: [{ name: 'alert', description: 'Says it.' }] }),
      400,
      'invalid_field',
      'tools',
    ],
    [
      'an answer to nothing',
      inputOf('none', { resume: [{ interruptId: 'approval:c1', status: 'resolved', payload: { approved: true } }] }),
      404,
      'session_not_found',
      undefined,
    ],
  ])('%s', async (_name, body, status, code, field) => {
    const answer = await gateway.post('/v1/agui', body);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(answer).toMatchObject({ status, body: { code, ...(field === undefined ? {} : { field }) } });
  });

  test('answers that are none, of a session that is there', async () => {
    const { agent, threadId } = agentOn();
    agent.addMessage(user('Write.'));
    await agent.runAgent({ forwardedProps: await start(asking) });
    const [{ id: interruptId = '' } = {}] = agent.pendingInterrupts;
    const answered = (entry: object) => gateway.post('/v1/agui', inputOf(threadId, { resume: [entry] as never }));
    expect(await answered({ interruptId: 'c1', status: 'resolved' })).toMatchObject({
      status: 400,
      body: { field: 'resume[0].interruptId' },
    });
    expect(await answered({ interruptId: 'approval:', status: 'cancelled' })).toMatchObject({
      status: 400,
      body: { field: 'resume[0].interruptId' },
    });
    expect(await answered({ interruptId, status: 'resolved' })).toMatchObject({
      status: 400,
      body: { field: expect.stringMatching(/^resume\[0\]\.payload/) },
    });
    expect(await answered({ interruptId, status: 'resolved', payload: { approved: true, arg: {} } })).toMatchObject({
      status: 400,
      body: { code: 'unknown_field', field: 'resume[0].payload.arg' },
    });
    expect(await answered({ interruptId, status: 'maybe' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_field' },
    });
    const both = [true, false].map((approved) => ({ interruptId, status: 'resolved', payload: { approved } }));
    expect(await gateway.post('/v1/agui', inputOf(threadId, { resume: both as never }))).toMatchObject({
      status: 400,
      body: { code: 'invalid_field', field: 'resume[1].interruptId' },
    });
    expect((await gateway.get(`/v1/sessions/${threadId}`)).body).toMatchObject({ approvals: [{ tool: 'write_file' }] });
  });

  test('tools of the page are left out where the request says so', async () => {
    const { agent } = agentOn();
    agent.addMessage(user('Say it.'));
    const { result } = await agent.runAgent({
      tools: [{ name: 'alert', description: 'Says it.', parameters: {} }],
      forwardedProps: { ...(await start([{ text: 'Without.' }])), page_tools: 'ignore' },
    });
    expect(result).toMatchObject({ text: 'Without.' });
  });

  test('no token, no JSON, no body, too much of it, the wrong method', async () => {
    const stranger = clientOf(gateway.url, 'made-up');
    expect(await stranger.post('/v1/agui', inputOf('none'))).toMatchObject({ status: 401 });
    expect(
      await gateway.send('POST', '/v1/agui', '{"threadId":', { 'content-type': 'application/json' }),
    ).toMatchObject({
      status: 400,
      body: { code: 'invalid_json' },
    });
    expect(await gateway.send('POST', '/v1/agui', 'hello', { 'content-type': 'text/plain' })).toMatchObject({
      status: 415,
    });
    expect(await gateway.send('POST', '/v1/agui')).toMatchObject({ status: 400, body: { field: 'threadId' } });
    const history = Array.from({ length: 40 }, () => user('x'.repeat(120_000)));
    expect(await gateway.post('/v1/agui', inputOf('none', { messages: history }))).toMatchObject({
      status: 413,
      body: { code: 'body_too_large' },
    });
    expect(await gateway.get('/v1/agui')).toMatchObject({ status: 405 });
  });

  test('a history over what commands may have is taken', async () => {
    const { threadId } = agentOn();
    const history = Array.from({ length: 30 }, () => user('x'.repeat(20_000)));
    const events = await eventsOf(
      inputOf(threadId, { messages: [...history, user('Now.')], forwardedProps: await start([{ text: 'Now.' }]) }),
    );
    expect(events.at(-1)).toMatchObject({ result: { text: 'Now.' } });
  });
});

describe('who may', () => {
  test('is told which scope is missing, and nothing is done', async () => {
    const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
    const created_at = new Date().toISOString();
    const made = (name: string, scopes: readonly ('read' | 'run' | 'steer' | 'approve')[]) =>
      newToken({ name, tenant: 'default', scopes: [...scopes], created_at });
    const [reader, runner, steerer] = [
      made('reader', ['read']),
      made('runner', ['read', 'run']),
      made('steerer', ['read', 'steer']),
    ];
    await writeTokens(tokensFile, [reader.stored, runner.stored, steerer.stored]);
    const own = await startGateway(fixture.bus, { tokensFile });
    const as = ({ token }: { readonly token: string }) => clientOf(own.url, token);
    const said = async (threadId: string, turns: readonly ScriptTurn[]) =>
      inputOf(threadId, { messages: [user('Go.')], forwardedProps: await start(turns) });
    try {
      const threadId = `thread-${++threads}`;
      const missing = (scope: string) => ({
        status: 403,
        body: { code: 'scope_missing', detail: expect.stringContaining(scope) },
      });
      expect(await as(reader).post('/v1/agui', await said(threadId, asking))).toMatchObject(missing('run'));
      expect(await as(steerer).post('/v1/agui', await said(threadId, asking))).toMatchObject(missing('run'));
      expect(await gateway.get(`/v1/sessions/${threadId}`)).toMatchObject({ status: 404 });
      const loose = inputOf(threadId, { messages: [user('Go.')], forwardedProps: await start(asking, allowed) });
      expect(await as(runner).post('/v1/agui', loose)).toMatchObject(missing('approve'));
      expect((await as(runner).post('/v1/agui', await said(threadId, asking))).status).toBe(200);
      const interruptId = 'approval:c1_1';
      const answer = inputOf(threadId, { resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] });
      expect(await as(runner).post('/v1/agui', answer)).toMatchObject(missing('approve'));
      expect(await as(runner).post('/v1/agui', inputOf(threadId, { messages: [user('And?')] }))).toMatchObject(
        missing('steer'),
      );
      // Whoever may read may come back and be told.
      expect((await as(reader).post('/v1/agui', inputOf(threadId))).status).toBe(200);
      expect((await gateway.get(`/v1/sessions/${threadId}`)).body).toMatchObject({
        state: { function_awaiting_approval: 'parked' },
        pending: [],
      });
    } finally {
      await own.stop();
    }
  });
});

describe('a persona', () => {
  test('of a folder that is served works in the sessions of its address: with its prompt, its model and its rules', async () => {
    const name = `clerk-${crypto.randomUUID().slice(0, 8)}`;
    const model = await scripted([
      {
        match_system: 'You are a clerk',
        calls: [{ tool: 'write_file', args: { path: 'clerk.txt', content: 'filed' } }],
      } as ScriptTurn,
      { text: 'Filed.' },
    ]);
    const folder = await scratchFolder('clerk');
    await writeFile(
      join(folder, 'persona.yaml'),
      `name: ${name}\nmodel: ${model}\npermissions: {rules: [{tool: write_file, action: allow}]}\n`,
    );
    await writeFile(join(folder, 'prompt.md'), 'You are a clerk.\n');
    const served = await servePersona(fixture.bus, folder);
    try {
      await until('that the host knows of it', async () => {
        const { agent, told } = agentOn(undefined, `/v1/agui/${name}`);
        agent.addMessage(user('File it.'));
        const { result } = await agent
          .runAgent({ forwardedProps: { start: { root } } })
          .catch(() => ({ result: undefined }));
        if (told.at(-1)?.code === 'persona_not_found') return false;
        expect(result).toMatchObject({ stop_reason: 'end_turn', text: 'Filed.' });
        expect(agent.state).toMatchObject({ persona: name, model });
        expect(typesOf(told)).toContain(EventType.TOOL_CALL_RESULT);
        return true;
      });
      expect(await readFile(join(root, 'clerk.txt'), 'utf8')).toBe('filed');
    } finally {
      await served.child.terminate();
    }
  });

  test('that delegates is seen to: a session below is a subagent of the call that has begun it', async () => {
    const name = 'lead';
    const model = await scripted([
      { match: 'All of it', calls: [{ tool: 'delegate', args: { persona: name, prompt: 'Your part.' } }] },
      { match: 'All of it', text: 'All is done.' },
      { match: 'Your part', text: 'My part is done.' },
    ]);
    const persona = { name, model, permissions: { rules: [{ tool: 'delegate', action: 'allow' }] } };
    const { agent, told } = agentOn();
    agent.addMessage(user('All of it'));
    const { result } = await agent.runAgent({ forwardedProps: { start: { persona, root } } });
    expect(result).toMatchObject({ text: 'All is done.' });
    const [started, ended] = told.filter(({ type }) => String(type).startsWith('SUBAGENT_'));
    expect(started).toMatchObject({ type: EventType.SUBAGENT_STARTED, name, parentToolCallId: 'c1_1' });
    expect(ended).toMatchObject({
      type: EventType.SUBAGENT_FINISHED,
      subagentRunId: started?.subagentRunId,
      outcome: { type: 'success' },
      result: { stop_reason: 'end_turn' },
    });
    // It is a session like any other.
    expect((await gateway.get(`/v1/sessions/${String(started?.subagentRunId)}`)).body).toMatchObject({ persona: name });
  });

  test('that asks before it delegates has a subagent only once it may', async () => {
    const name = 'lead';
    const model = await scripted([
      { match: 'All of it', calls: [{ tool: 'delegate', args: { persona: name, prompt: 'Your part.' } }] },
      { match: 'All of it', text: 'All is done.' },
      { match: 'Your part', text: 'My part is done.' },
    ]);
    const persona = { name, model, permissions: { rules: [{ tool: 'delegate', action: 'ask' }] } };
    const { agent, told } = agentOn();
    agent.addMessage(user('All of it'));
    await agent.runAgent({ forwardedProps: { start: { persona, root } } });
    expect(told.filter(({ type }) => String(type).startsWith('SUBAGENT_'))).toEqual([]);
    const [{ id: interruptId = '' } = {}] = agent.pendingInterrupts;
    const { result } = await agent.runAgent({
      resume: [{ interruptId, status: 'resolved', payload: { approved: true } }],
    });
    expect(result).toMatchObject({ text: 'All is done.' });
    expect(told.filter(({ type }) => String(type).startsWith('SUBAGENT_')).map(({ type }) => type)).toEqual([
      EventType.SUBAGENT_STARTED,
      EventType.SUBAGENT_FINISHED,
    ]);
  });

  test('of the address has the new session; one that nobody knows is refused', async () => {
    const { agent, told, threadId } = agentOn(undefined, '/v1/agui/nobody');
    agent.addMessage(user('Look.'));
    await agent.runAgent({ forwardedProps: await start([{ text: 'Never.' }]) }).catch(() => undefined);
    expect(told.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: 'persona_not_found' });
    const { body: page } = await gateway.get(`/v1/sessions/${threadId}/events?limit=1`);
    expect(page.records).toMatchObject([{ input: { verb: 'start', body: { persona: 'nobody', prompt: 'Look.' } } }]);
    const { status, body } = await gateway.post('/v1/agui/a%20b', inputOf('none', { messages: [user('x')] }));
    expect({ status, field: body.field }).toEqual({ status: 400, field: 'persona' });
    const twice = { start: { persona: 'other' } };
    expect(
      await gateway.post('/v1/agui/reviewer', inputOf('none', { messages: [user('x')], forwardedProps: twice })),
    ).toMatchObject({
      status: 400,
      body: { code: 'unknown_field', field: 'forwardedProps.start.persona' },
    });
  });
});

test('a gateway that stops ends the run with a code; the session goes on', async () => {
  const own = await startGateway(fixture.bus);
  const threadId = `thread-${++threads}`;
  const agent = new HttpAgent({
    url: `${own.url}/v1/agui`,
    headers: { authorization: `Bearer ${own.token}` },
    threadId,
  });
  const told: Told[] = [];
  agent.subscribe({ onEvent: ({ event }) => void told.push(event as Told) });
  agent.addMessage(user('Wait.'));
  const run = agent.runAgent({ forwardedProps: await start(waiting('stopped'), allowed) }).catch(() => undefined);
  await atWork(threadId);
  await until('the call', () => told.some(({ type }) => type === EventType.TOOL_CALL_END));
  await own.stop();
  await run;
  expect(told.at(-1)).toMatchObject({ type: EventType.RUN_ERROR, code: 'gateway_stopping' });
  await writeFile(join(root, 'stopped'), '');
  const back = agentOn(threadId);
  expect(await back.agent.runAgent()).toMatchObject({ result: { text: 'Waited.' } });
});
