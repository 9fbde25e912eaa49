import type { Delta, JournalRecord, SessionEvent } from '@coxswain/protocol';
import { GENESIS_HASH, hostNotice } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createEventTranslator, type EventTranslator, type UiEvent } from '../src/mod.ts';

const usage = { input_tokens: 1, output_tokens: 1 };

function record(
  n: number,
  events: SessionEvent[],
  input: object = { type: 'owned', epoch: 1, host: 'h' },
): JournalRecord {
  return {
    v: 1,
    session_id: 's1',
    n,
    epoch: 1,
    attempt: 'a',
    prev_hash: GENESIS_HASH,
    at: '2026-01-01T00:00:00.000Z',
    input: input as JournalRecord['input'],
    events,
    state: 'assistant_streaming',
    effects_open: [],
  };
}

function answer(n: number, effectId: string, text: string, partial = false): JournalRecord {
  const message = {
    role: 'assistant' as const,
    content: [{ type: 'text' as const, text }],
    ...(partial ? { partial: true as const } : {}),
  };
  return record(
    n,
    [
      {
        type: 'message_complete',
        turn: 1,
        message,
        finish_reason: 'stop',
        usage,
        body_streamed: true,
        duration_ms: 1,
        attempts: 1,
      },
    ],
    { type: 'model_outcome', effect_id: effectId },
  );
}

function delta(offset: number, text: string, more: Partial<Delta> = {}): Delta {
  return {
    type: 'message_update',
    session_id: 's1',
    effect_id: '2-0',
    epoch: 1,
    attempt: 1,
    turn: 1,
    index: 0,
    kind: 'text',
    offset,
    text,
    ...more,
  };
}

/** What a reader has before the eyes: appended text, `⟲` where it began again. */
function shownText(events: UiEvent[]): string {
  return events
    .map((event) => (event.type === 'text_appended' ? event.text : event.type === 'answer_restarted' ? '⟲' : ''))
    .join('');
}

function play(translator: EventTranslator, items: (JournalRecord | Delta)[]): UiEvent[] {
  return items.flatMap((item) => ('type' in item ? translator.delta(item) : translator.record(item)));
}

test('streamed text is shown as it comes and its record adds nothing', () => {
  const events = play(createEventTranslator(), [
    record(1, []),
    record(2, []),
    delta(0, 'Hel'),
    delta(3, 'lo'),
    answer(3, '2-0', 'Hello'),
  ]);
  expect(shownText(events)).toBe('Hello');
  expect(events.filter(({ type }) => type === 'text_appended')).toHaveLength(2);
});

test.each([
  ['half', true],
  ['', false],
  [' \n', false],
])('an answer that was broken off after %j is shown as partial: %s', (text, partial) => {
  const events = play(createEventTranslator(), [record(1, []), record(2, []), answer(3, '2-0', text, true)]);
  expect(events).toContainEqual(expect.objectContaining({ type: 'answer_ended', partial }));
});

test('text without deltas is shown from its record', () => {
  expect(shownText(play(createEventTranslator(), [record(1, []), record(2, []), answer(3, '2-0', 'Hello')]))).toBe(
    'Hello',
  );
});

test('a lost delta holds the later ones back until the gap is filled, or the record has come', () => {
  const translator = createEventTranslator();
  expect(shownText(play(translator, [record(1, []), record(2, []), delta(0, 'a'), delta(2, 'c'), delta(3, 'd')]))).toBe(
    'a',
  );
  expect(shownText(translator.delta(delta(0, 'abc')))).toBe('bc');
  expect(shownText(translator.delta(delta(4, 'e')))).toBe('');
  expect(shownText(translator.record(answer(3, '2-0', 'abcde')))).toBe('de');
});

test('an answer that was asked for in a record that is shown elsewhere is shown at once', () => {
  expect(shownText(createEventTranslator({ after: 2 }).delta(delta(0, 'the answer')))).toBe('the answer');
});

test('deltas that run ahead of the record that asked for them wait for it', () => {
  const translator = createEventTranslator();
  expect(play(translator, [record(1, []), delta(0, 'early')])).toEqual([
    expect.objectContaining({ type: 'state_changed' }),
  ]);
  const events = translator.record(record(2, [{ type: 'turn_start', turn: 1 }]));
  expect(events.map(({ type }) => type)).toEqual(['turn_started', 'state_changed', 'text_appended']);
});

test('deltas after their record are dropped', () => {
  const translator = createEventTranslator();
  play(translator, [record(1, []), record(2, []), delta(0, 'a'), answer(3, '2-0', 'ab')]);
  expect(translator.delta(delta(1, 'b'))).toEqual([]);
});

test('an answer that a second host begins again is shown to begin again, and the first host is not heard any more', () => {
  const translator = createEventTranslator();
  const before = play(translator, [record(1, []), record(2, []), delta(0, 'one ')]);
  const after = play(translator, [
    delta(0, 'two ', { epoch: 2 }),
    delta(4, 'zombie', { epoch: 1 }),
    delta(4, 'more', { epoch: 2 }),
    answer(3, '2-0', 'two more'),
  ]);
  expect(shownText([...before, ...after])).toBe('one ⟲two more');
});

test('an answer whose record differs from what was streamed is shown from the start', () => {
  const events = play(createEventTranslator(), [
    record(1, []),
    record(2, []),
    delta(0, 'abc'),
    answer(3, '2-0', 'xyz'),
  ]);
  expect(shownText(events)).toBe('abc⟲xyz');
});

test('a repeated record shows nothing', () => {
  const translator = createEventTranslator();
  translator.record(record(1, [{ type: 'turn_start', turn: 1 }]));
  expect(translator.record(record(1, [{ type: 'turn_start', turn: 1 }]))).toEqual([]);
});

test('a checkpoint is shown with what it delivered, and one that delivered nothing is not shown', () => {
  const checkpoint = (delivered_ids: string[]): SessionEvent => ({
    type: 'loop_checkpoint',
    session_id: 's1',
    iteration: 1,
    kind: 'post_tool_dispatch',
    delivered: delivered_ids.length,
    delivered_ids,
    inbox_delivered: 0,
    dispatch_skipped: false,
  });
  const injected: SessionEvent = {
    type: 'message_injected',
    command_id: 'c1',
    origin: 'steer',
    seam: 'post_tool_dispatch',
    turn: 1,
    message: { role: 'user', content: [{ type: 'text', text: 'the other file' }] },
  };
  const events = createEventTranslator().record(record(1, [checkpoint([]), checkpoint(['c1']), injected]));
  expect(events.filter(({ type }) => type === 'seam_delivered')).toEqual([
    {
      type: 'seam_delivered',
      seam: 'post_tool_dispatch',
      turn: 1,
      injections: [{ commandId: 'c1', origin: 'steer', text: 'the other file' }],
      skippedCallIds: [],
      n: 1,
      at: '2026-01-01T00:00:00.000Z',
    },
  ]);
});

test('feedback is shown as who gave it and what it says, without the frame that is for the model', () => {
  const checkpoint: SessionEvent = {
    type: 'loop_checkpoint',
    session_id: 's1',
    iteration: 2,
    kind: 'pre_compact',
    delivered: 0,
    delivered_ids: [],
    inbox_delivered: 1,
    dispatch_skipped: false,
  };
  const injected: SessionEvent = {
    type: 'message_injected',
    command_id: 'feedback:1',
    origin: 'feedback',
    seam: 'pre_compact',
    turn: 2,
    message: { role: 'user', content: [{ type: 'text', text: hostNotice('mcp:every', 'the disk\nis full') }] },
  };
  const events = createEventTranslator().record(record(1, [checkpoint, injected]));
  expect(events.find(({ type }) => type === 'seam_delivered')).toMatchObject({
    seam: 'pre_compact',
    injections: [{ commandId: 'feedback:1', origin: 'feedback', text: 'mcp:every: the disk\nis full' }],
  });
});

test('a steer that was blocked is shown with the reason', () => {
  const blocked: SessionEvent = { type: 'injection_blocked', command_id: 'm', reason: 'door: no orders from ashore' };
  expect(createEventTranslator().record(record(1, [blocked]))).toContainEqual(
    expect.objectContaining({ type: 'injection_blocked', commandId: 'm', reason: 'door: no orders from ashore' }),
  );
});

test('what a hook adds waits for nothing, and what it decides is told as that', () => {
  const reminder: SessionEvent = {
    type: 'reminder_injected',
    command_id: 'hook:2-0:1',
    body: 'mind the reef',
    mode: 'finish_step',
    hook: 'pilot',
    direct: true,
    tags: [],
    preserve_on_compact: false,
    propagate: 'none',
    role_hint: 'system',
    at: '2026-03-01T00:00:00.000Z',
  };
  const allowed: SessionEvent = { type: 'hook_vetoed', hook: 'pilot', point: 'permission_asked', decision: 'allow' };
  const shown = createEventTranslator().record(record(1, [reminder, allowed]));
  expect(shown.slice(0, 2)).toMatchObject([
    { type: 'hook_reminded', hook: 'pilot', text: 'mind the reef' },
    { type: 'hook_vetoed', hook: 'pilot', decision: 'allow' },
  ]);
});

test('a call’s end is shown with the arguments that its message gave', () => {
  const translator = createEventTranslator();
  const asked = answer(2, '1-0', '');
  const withCall = {
    ...asked,
    events: asked.events.map((event) =>
      event.type === 'message_complete'
        ? {
            ...event,
            message: {
              role: 'assistant' as const,
              content: [{ type: 'call' as const, call_id: 'k1', tool: 'read_file', args: { path: 'a.txt' } }],
            },
          }
        : event,
    ),
  };
  translator.record(record(1, []));
  translator.record(withCall);
  const [ended] = translator.record(
    record(3, [
      {
        type: 'call_ended',
        call_id: 'k1',
        tool: 'read_file',
        status: 'skipped',
        result: { content: [{ type: 'text', text: '\nnot run\u001b[2J\nmore' }], is_error: true },
        is_error: true,
        duration_ms: 0,
      },
    ]),
  );
  expect(ended).toMatchObject({ type: 'call_ended', summary: 'a.txt', result: 'not run[2J', status: 'skipped' });
});

test('control characters of a model never reach a terminal', () => {
  const events = play(createEventTranslator(), [record(1, []), record(2, []), delta(0, 'a\u001b]0;x\u0007b\tc\n')]);
  expect(shownText(events)).toBe('a]0;xb\tc\n');
});

test('nor does what anybody may write: names, reasons, questions', () => {
  const said = 'safe\u001b[2J \u202eeh';
  const actor = { name: said, verified: false };
  const shown = play(createEventTranslator(), [
    record(1, [
      {
        type: 'approval_requested',
        call_id: 'k1',
        tool: 'read_file',
        args: {},
        requested_by: 'rule:ask',
        question: said,
      },
      { type: 'approval_decided', call_id: 'k1', decision: 'deny', actor, reason: said },
      { type: 'hook_vetoed', hook: 'policy', point: 'PreToolUse', decision: 'deny', reason: said },
      {
        type: 'control_outcome',
        control: 'cancel',
        command_id: 'c1',
        status: 'cancelled',
        target: 's1',
        actor,
        reason: said,
      },
      { type: 'suspended', reason: said },
      { type: 'followup_received', command_id: 'c2', body: said, actor, at: '2026-01-01T00:00:00.000Z' },
    ]),
  ]);
  expect(shown.length).toBeGreaterThan(5);
  expect(JSON.stringify(shown)).not.toMatch(/\\u001b|\u202e/);
});

test('a control names its sender, if the sender gave a name', () => {
  const cancel = {
    type: 'control_outcome',
    control: 'cancel',
    command_id: 'c',
    status: 'cancelled',
    target: 's1',
  } as const;
  const shown = play(createEventTranslator(), [
    record(1, [{ ...cancel, actor: { name: 'ada', verified: true } }]),
    record(2, [cancel]),
  ]);
  expect(shown.flatMap((event) => (event.type === 'control_reported' ? [event.by] : []))).toEqual(['ada', null]);
});

test('a run that ended before its model was known is not said to be on the model of the run before', () => {
  const begun = { type: 'agent_start', run: 2, machine_version: 1, persona: 'mate', model: 'a/b' } as const;
  const known = { persona: 'p', prompt: 'q', tools: 't' };
  const told = (fingerprints: typeof known | null) =>
    createEventTranslator()
      .record(record(1, [{ ...begun, fingerprints }]))
      .find(({ type }) => type === 'run_started');
  expect(told(known)).toMatchObject({ persona: 'mate', model: 'a/b' });
  expect(told(null)).toMatchObject({ persona: 'mate', model: null });
});

test('an answer that does not fit the output schema is an event with its problems', () => {
  const problems = ['total: must be number'];
  const events: SessionEvent[] = [{ type: 'output_rejected', turn: 1, repairs: 1, repairs_max: 2, problems }];
  expect(createEventTranslator().record(record(3, events))[0]).toMatchObject({
    ...{ type: 'output_rejected', turn: 1, repairs: 1, repairsMax: 2, problems, n: 3 },
  });
});
