/** What an editor does to a session while it works: permissions, cancelling, steering, more prompts. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  methods,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk';
import { describe, expect, it } from 'vitest';
import { editorsOn, letGo, WAITING_CALL } from './kit/acp-editors.ts';
import { type Editor, refused } from './kit/editor.ts';
import { busAndHost } from './kit/fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const editors = editorsOn(() => fixture.bus);
const RUNS = { args: ['--allow', 'run_command'] };

const selected = (optionId: string) => ({ outcome: { outcome: 'selected' as const, optionId } });
const write = (path: string) => ({ tool: 'write_file', args: { path, content: 'written' } });
const hasStarted = (editor: Editor, callId = 'c1_1') =>
  editor.shows(`that ${callId} has started`, () =>
    editor.of('tool_call_update').some(({ toolCallId, status }) => toolCallId === callId && status === 'in_progress'),
  );

describe('a permission', () => {
  it('is asked for with the call as it would run, and allows it once', async () => {
    const asked: RequestPermissionRequest[] = [];
    const editor = await editors.with(
      [{ calls: [write('a.txt')] }, { calls: [write('a.txt')] }, { text: 'Written twice.' }],
      {
        permit: (request) => {
          asked.push(request);
          return selected('allow_once');
        },
      },
    );
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    expect(await editor.prompt(id, 'write')).toMatchObject({ stopReason: 'end_turn' });
    expect(asked.map(({ toolCall }) => toolCall.toolCallId)).toEqual(['c1_1', 'c2_1']);
    expect(asked[0]).toMatchObject({
      sessionId: id,
      toolCall: {
        kind: 'edit',
        name: 'write_file',
        rawInput: { path: 'a.txt', content: 'written' },
        content: [{ type: 'diff', path: join(root, 'a.txt'), newText: 'written' }],
      },
      options: [{ kind: 'allow_once' }, { kind: 'allow_always' }, { kind: 'reject_once' }, { kind: 'reject_always' }],
    });
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('written');
  });

  it('that is given always is not asked for again', async () => {
    let asked = 0;
    const editor = await editors.with(
      [{ calls: [write('a.txt')] }, { calls: [write('a.txt')] }, { text: 'Written twice.' }],
      {
        permit: () => {
          asked += 1;
          return selected('allow_always');
        },
      },
    );
    const id = await editor.session(await scratchFolder('acp'));
    expect(await editor.prompt(id, 'write')).toMatchObject({ stopReason: 'end_turn' });
    expect(asked).toBe(1);
    expect(editor.text()).toBe('Written twice.');
  });

  it('that is refused ends the call as failed, and the model goes on', async () => {
    const editor = await editors.with([{ calls: [write('a.txt')] }, { text: 'Then not.' }], {
      permit: () => selected('reject_once'),
    });
    const id = await editor.session(await scratchFolder('acp'));
    expect(await editor.prompt(id, 'write')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.of('tool_call_update').at(-1)).toMatchObject({
      status: 'failed',
      rawOutput: { status: 'denied' },
      _meta: { coxswain: { denied_by: 'user' } },
    });
    expect(editor.text()).toBe('Then not.');
  });

  it('that is answered by anything but an offered option is denied with a reason, and the prompt ends', async () => {
    const answers: Record<string, () => RequestPermissionResponse> = {
      c1_1: () => ({ outcome: { outcome: 'cancelled' } }),
      c1_2: () => {
        throw new RequestError(-32_603, 'the dialog is broken');
      },
      c1_3: () => ({}) as RequestPermissionResponse,
      c1_4: () => selected('allow_everything'),
    };
    const calls = Object.keys(answers).map((id) => write(`${id}.txt`));
    const editor = await editors.with([{ calls }, { text: 'Nothing is written.' }], {
      permit: ({ toolCall }) => answers[toolCall.toolCallId]?.() as RequestPermissionResponse,
    });
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    expect(await editor.prompt(id, 'write')).toMatchObject({ stopReason: 'end_turn' });
    const reasons: unknown[] = [];
    for await (const { record } of fixture.bus.client.session(id).journal())
      for (const event of record.events)
        if (event.type === 'approval_decided') reasons.push([event.call_id, event.decision, event.reason]);
    expect(reasons.sort()).toEqual([
      ['c1_1', 'deny', 'the permission request was cancelled in the editor'],
      ['c1_2', 'deny', 'the editor answered the permission request with an error: the dialog is broken'],
      ['c1_3', 'deny', 'the editor sent no valid outcome for the permission request'],
      ['c1_4', 'deny', 'the editor answered with an option that was not offered'],
    ]);
    expect(editor.of('tool_call_update').filter(({ status }) => status === 'failed')).toHaveLength(4);
    expect(await readdir(root)).toEqual([]);
  });

  it('that is decided elsewhere is taken back from the editor', async () => {
    const seen: string[] = [];
    const editor = await editors.with([{ calls: [write('a.txt')] }, { text: 'Written.' }], {
      permit: (request, taken) =>
        new Promise((resolve) => {
          seen.push(request.toolCall.toolCallId);
          taken.addEventListener('abort', () => {
            seen.push('taken back');
            resolve({ outcome: { outcome: 'cancelled' } });
          });
        }),
    });
    const id = await editor.session(await scratchFolder('acp'));
    const done = editor.prompt(id, 'write');
    await until('that the editor is asked', () => seen.length === 1);
    await fixture.bus.client.session(id).approve('c1_1');
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
    await until('that the question is taken back', () => seen.length === 2);
    expect(seen).toEqual(['c1_1', 'taken back']);
  });
});

describe('a permission of a session below', () => {
  it('is asked for as well, under that session', async () => {
    const folder = await scratchFolder('acp');
    const persona = join(folder, 'lead.yaml');
    const asked: RequestPermissionRequest[] = [];
    await writeFile(
      persona,
      JSON.stringify({
        name: 'lead',
        model: await scripted([
          { match: 'All of it', calls: [{ tool: 'delegate', args: { persona: 'lead', prompt: 'Your part.' } }] },
          { match: 'All of it', text: 'All is done.' },
          { match: 'Your part', calls: [write('out.txt')] },
          { match: 'Your part', text: 'My part is done.' },
        ]),
        permissions: { rules: [{ tool: 'delegate', action: 'allow' }] },
      }),
    );
    const editor = await editors.open({
      args: ['--persona', persona],
      permit: (request) => {
        asked.push(request);
        return selected('allow_once');
      },
    });
    const id = await editor.session(folder);
    expect(await editor.prompt(id, 'All of it')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('All is done.');
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ sessionId: id, toolCall: { name: 'write_file' } });
    expect(asked[0]?.toolCall.toolCallId).toMatch(/^.+\/c1_1$/);
    expect(await readFile(join(folder, 'out.txt'), 'utf8')).toBe('written');
  });
});

describe('cancelling', () => {
  it('ends the run, and the prompt as cancelled; the session takes the next one', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Again.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    const first = editor.prompt(id, 'work');
    await hasStarted(editor);
    const waiting = editor.prompt(id, 'and then this');
    await until('that the second prompt waits', async () => {
      const { pending } = await fixture.bus.client.session(id).state();
      return pending.length === 1;
    });
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await first).toMatchObject({ stopReason: 'cancelled' });
    expect(await waiting).toMatchObject({ stopReason: 'cancelled' });
    expect(await editor.prompt(id, 'once more')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('Again.');
  });

  it('right behind a prompt that waits takes that along, too', async () => {
    const turns = [{ calls: [WAITING_CALL] }, { text: 'Never.' }];
    const editor = await editors.with(turns, RUNS);
    for (let times = 0; times < 8; times++) {
      const id = await editor.session(await scratchFolder('acp'));
      const first = editor.prompt(id, 'work');
      await editor.shows('the call', () => editor.of('tool_call_update', id).length > 0);
      const waiting = editor.prompt(id, 'and then this');
      await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
      expect(await first).toMatchObject({ stopReason: 'cancelled' });
      expect(await waiting).toMatchObject({ stopReason: 'cancelled' });
    }
  });

  it('by somebody else takes what waits along, too', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Never.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    const first = editor.prompt(id, 'work');
    await hasStarted(editor);
    const session = fixture.bus.client.session(id);
    const waiting = [editor.prompt(id, 'and then this'), editor.prompt(id, 'and that')];
    await until('that both wait', async () => (await session.state()).pending.length === 2);
    await session.cancel('enough', { wait: 'accepted' });
    expect(await first).toMatchObject({ stopReason: 'cancelled' });
    for (const one of waiting) expect(await one).toMatchObject({ stopReason: 'cancelled' });
    expect(await session.state()).toMatchObject({ run: 1, pending: [] });
  });

  it('of a prompt request that waits, by its id, takes that one back and leaves the run', async () => {
    const folder = await scratchFolder('acp');
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Done.' }, { text: 'Never.' }], RUNS);
    const id = await editor.session(folder);
    const first = editor.prompt(id, 'work');
    await hasStarted(editor);
    const taking = new AbortController();
    const waiting = editor.agent.request(
      methods.agent.session.prompt,
      { sessionId: id, prompt: [{ type: 'text', text: 'and then this' }] },
      { cancellationSignal: taking.signal },
    );
    taking.abort();
    expect(await waiting).toMatchObject({ stopReason: 'cancelled' });
    await letGo(folder);
    expect(await first).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('Done.');
  });

  it('of a prompt request by its id is the same', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Never.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    const taking = new AbortController();
    const first = editor.agent.request(
      methods.agent.session.prompt,
      { sessionId: id, prompt: [{ type: 'text', text: 'work' }] },
      { cancellationSignal: taking.signal },
    );
    await hasStarted(editor);
    taking.abort();
    expect(await first).toMatchObject({ stopReason: 'cancelled' });
  });
});

describe('a prompt while a run is under way', () => {
  it('is a follow-up, and answers when its run has ended', async () => {
    const editor = await editors.with(
      [{ calls: [WAITING_CALL] }, { text: 'First done.' }, { match: 'and then this', text: ' Second done.' }],
      RUNS,
    );
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    const first = editor.prompt(id, 'work');
    await hasStarted(editor);
    const second = editor.prompt(id, 'and then this');
    await until('that it waits', async () => (await fixture.bus.client.session(id).state()).pending.length === 1);
    await letGo(root);
    expect(await Promise.all([first, second])).toMatchObject([
      { stopReason: 'end_turn', _meta: { coxswain: { run: 1 } } },
      { stopReason: 'end_turn', _meta: { coxswain: { run: 1 } } },
    ]);
    expect(editor.text()).toBe('First done. Second done.');
    // The editor has shown both by itself.
    expect(editor.text('user_message_chunk')).toBe('');
  });

  it('begins the next run where its run ends at its limit without it', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { match: 'and then this', text: 'Second done.' }], {
      args: ['--allow', 'run_command', '--max-turns', '1'],
    });
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    const first = editor.prompt(id, 'work');
    await hasStarted(editor);
    const second = editor.prompt(id, 'and then this');
    await until('that it waits', async () => (await fixture.bus.client.session(id).state()).pending.length === 1);
    await letGo(root);
    expect(await first).toMatchObject({ stopReason: 'max_turn_requests' });
    expect(await second).toMatchObject({ stopReason: 'end_turn', _meta: { coxswain: { run: 2 } } });
    expect(editor.text()).toBe('Second done.');
  });
});

describe('steering from an editor', () => {
  it('is advertised, and delivered at a seam of the run', async () => {
    const editor = await editors.with(
      [{ calls: [WAITING_CALL] }, { match: 'another way', text: 'Another way, then.' }],
      RUNS,
    );
    expect(editor.initialized.agentCapabilities?._meta).toMatchObject({
      coxswain: {
        methods: {
          steering: '_session/steering',
          inject: '_session/inject',
          remind: '_session/remind',
          cancel_tool_call: '_session/cancel_tool_call',
        },
      },
    });
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    const done = editor.prompt(id, 'work');
    await hasStarted(editor);
    const told = await editor.agent.request('_session/steering', { sessionId: id, body: 'try another way' });
    expect(told).toMatchObject({ stage: 'accepted' });
    await letGo(root);
    await done;
    expect(editor.text()).toBe('Another way, then.');
    expect(editor.text('user_message_chunk')).toBe('try another way');
  });

  it('that interrupts and preempts ends the call that runs', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { match: 'stop', text: 'Stopped.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    const done = editor.prompt(id, 'work');
    await hasStarted(editor);
    const told = await editor.agent.request('session/inject', {
      sessionId: id,
      body: 'stop that',
      mode: 'interrupt_immediate',
      preempt: true,
      wait: 'delivered',
    });
    expect(told).toMatchObject({ stage: 'delivered', seam: expect.any(String) });
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('Stopped.');
  });

  it('queues, reminds, and ends one call', async () => {
    const editor = await editors.with(
      [
        { calls: [WAITING_CALL] },
        { text: 'The call was ended.' },
        { match: 'the next thing', text: ' The next thing.' },
      ],
      RUNS,
    );
    const id = await editor.session(await scratchFolder('acp'));
    const done = editor.prompt(id, 'work');
    await hasStarted(editor);
    const ask = (method: string, params: object) => editor.agent.request(method, { sessionId: id, ...params });
    expect(await ask('_session/inject_reminder', { body: 'the next thing', mode: 'queue' })).toMatchObject({
      stage: 'accepted',
    });
    expect(await ask('_session/remind', { body: 'be brief', ttl_turns: 2 })).toMatchObject({ stage: 'accepted' });
    expect(await ask('session/cancel_tool_call', { toolCallId: 'c1_1', reason: 'too slow' })).toMatchObject({
      outcome: 'cancelled',
      tool: 'run_command',
      reason: 'too slow',
    });
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('The call was ended. The next thing.');
    const prompts = await fixture.bus.client.session(id).state();
    expect(prompts.stopReason).toBe('end_turn');
  });

  it('is refused by the field that is wrong', async () => {
    const editor = await editors.with([{ text: 'Done.' }]);
    const id = await editor.session(await scratchFolder('acp'));
    await editor.prompt(id, 'work');
    const ask = (method: string, params: object) => refused(editor.agent.request(method, params));
    expect(await ask('_session/steering', { sessionId: id, body: 'x', mode: 'loudly' })).toMatchObject({
      code: -32_602,
      data: { code: 'invalid_mode', field: 'mode' },
    });
    expect(await ask('_session/inject', { sessionId: id, body: 'x', volume: 11 })).toMatchObject({
      code: -32_602,
      data: { code: 'unknown_field', field: 'volume' },
      message: expect.stringMatching(/inject takes sessionId, id, wait, body, mode, preempt, dedupe_key$/),
    });
    expect(await ask('_session/inject', { sessionId: id, body: 'x', mode: 'loudly' })).toMatchObject({
      code: -32_602,
      data: { code: 'invalid_mode', field: 'mode' },
      message: expect.stringContaining('queue'),
    });
    expect(await ask('_session/steering', { sessionId: id, body: 'x', actor: 'me' })).toMatchObject({
      data: { code: 'unknown_field', field: 'actor' },
    });
    expect(await ask('_session/remind', { sessionId: id, body: ' ' })).toMatchObject({ data: { code: 'empty_body' } });
    expect(await ask('_session/steering', { body: 'x' })).toMatchObject({
      code: -32_602,
      message: expect.stringContaining('sessionId'),
    });
    expect(await ask('_session/steering', { sessionId: 'nowhere', body: 'x' })).toMatchObject({ code: -32_002 });
    const nothing = { sessionId: id, toolCallId: 'c9' };
    expect(await editor.agent.request('_session/cancel_tool_call', nothing)).toMatchObject({ outcome: 'not_found' });
    expect(await ask('_session/cancel_tool_call', { ...nothing, timeout_ms: 'soon' })).toMatchObject({
      code: -32_602,
      data: { field: 'timeout_ms' },
    });
    expect(await ask('_session/unheard_of', { sessionId: id })).toMatchObject({ code: -32_601 });
  });
});
