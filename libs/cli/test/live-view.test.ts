import { PassThrough } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Session, UiEvent } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { describe, expect, test } from 'vitest';
import {
  drawFrame,
  type FinishedItem,
  type FrameOptions,
  finishedRows,
  initialView,
  type Key,
  LiveRegion,
  LiveView,
  NO_DETAILS,
  type RecordDetails,
  reduceView,
  type ViewAction,
  type ViewEffect,
} from '../src/live-view/mod.ts';
import { columnsOf, createStyle } from '../src/terminal/mod.ts';

const STARTED = Date.parse('2026-01-01T00:00:00.000Z');
const from = { n: 1, at: '2026-01-01T00:00:00.000Z' };
const usage = { inputTokens: 12_345, outputTokens: 67 };
const EDIT = { path: 'math.ts', old_text: 'a\nreturn a - b;', new_text: 'a\nreturn a + b;' };

/** A view in memory: what came in, what it has finished, and what it asks for. */
function view(sessionId: string | null = 's1') {
  let state = initialView(sessionId);
  const finished: FinishedItem[] = [];
  const effects: ViewEffect[] = [];
  const take = (action: ViewAction) => {
    const step = reduceView(state, action);
    state = step.state;
    finished.push(...step.finished);
    effects.push(...step.effects);
  };
  const key = (name: string, more: Key = {}) => take({ type: 'key', text: undefined, key: { name, ...more } });
  return {
    effects,
    state: () => state,
    take,
    key,
    record: (events: UiEvent[], details: Partial<RecordDetails> = {}) =>
      take({ type: 'record', events, details: { ...NO_DETAILS, ...details }, isPast: false }),
    type: (text: string) => {
      for (const one of text) take({ type: 'key', text: one, key: { name: one, sequence: one } });
    },
    enter: () => key('return'),
    frame: (columns = 80, rows = 24, options: Partial<FrameOptions> = {}) =>
      drawFrame(state, {
        columns,
        rows,
        nowMs: STARTED + 3_400,
        hasKeyboard: true,
        question: 'leave?',
        startsRuns: false,
        followsText: false,
        style: createStyle(false),
        ...options,
      }),
    scrollback: (columns = 79) => finished.flatMap((item) => finishedRows(item, columns, createStyle(false)).rows),
  };
}

const streaming: UiEvent = { type: 'state_changed', state: 'assistant_streaming', ...from };
const started = (callId: string, tool: string, args: object, summary: string): UiEvent =>
  ({ type: 'call_started', callId, tool, args, summary, ...from }) as UiEvent;
const ended = (callId: string, tool: string, result: string): UiEvent => ({
  type: 'call_ended',
  callId,
  tool,
  status: 'ok',
  summary: 'npm test',
  result,
  isError: false,
  durationMs: 1_200,
  ...from,
});
const queued = (commandId: string, text: string): UiEvent => ({
  type: 'injection_received',
  kind: 'steer',
  commandId,
  text,
  mode: 'finish_step',
  actor: null,
  ...from,
});
const asks = (callId: string, args: object): UiEvent =>
  ({
    type: 'approval_needed',
    callId,
    tool: 'edit_file',
    args,
    summary: '…',
    requestedBy: 'rule',
    question: null,
    ...from,
  }) as UiEvent;
const approval = (callId: string, args: object) =>
  ({ ...asks(callId, args), session: { id: 's1' } as Session }) as unknown as OpenApproval;
const [ONE, TWO, THREE] = [approval('c1', EDIT), approval('c2', EDIT), approval('c3', EDIT)];

describe('the live part', () => {
  test.each([
    [80, '⠼ thinking 3 s · turn 2 · 12.3k in, 67 out · $0.0123 · 1 queued · s1'],
    [120, '⠼ thinking 3 s · turn 2 · 12.3k in, 67 out · $0.0123 · 1 queued · s1 · anthropic/claude-sonnet-4-5'],
  ])(
    'has the open text, running calls, the queue, the typed text and the state, %i columns wide',
    (columns, status) => {
      const v = view();
      v.record([
        { type: 'run_started', run: 1, persona: null, model: 'anthropic/claude-sonnet-4-5', ...from },
        { type: 'turn_started', turn: 2, ...from },
        { type: 'answer_ended', turn: 1, partial: false, finishReason: 'stop', usage, ...from },
        started('c1', 'run_command', { command: 'npm test' }, 'npm test'),
        queued('m1', 'try the other\nfile'),
      ]);
      v.record([streaming], { costUsd: 0.0123 });
      v.take({
        type: 'live',
        events: [{ type: 'call_progressed', callId: 'c1', tool: null, text: '3 of 9\n4 of 9\n' }],
      });
      v.take({ type: 'live', events: [{ type: 'text_appended', turn: 2, text: 'done.\n\nNow **the' }] });
      v.type('next');
      expect(v.frame(columns).rows).toEqual([
        '',
        'Now **the',
        '',
        '  ⠼ run_command npm test · 3 s',
        '    └ 4 of 9',
        '  ↳ steer queued: “try the other …”',
        '─'.repeat(columns - 1),
        'steer › next',
        status,
      ]);
      expect(v.scrollback()).toContain('done.');
    },
  );

  test.each([
    [20, 6],
    [80, 5],
    [40, 12],
  ])('fits a window of %i columns and %i rows', (columns, rows) => {
    const v = view();
    v.record([streaming, asks('c2', EDIT), queued('m1', '漢字'.repeat(60))]);
    for (let n = 0; n < 9; n++) v.record([started(`c${n}`, 'run_command', {}, '👨‍👩‍👧'.repeat(50))]);
    v.take({ type: 'approvals', approvals: [approval('c2', EDIT)] });
    v.take({ type: 'live', events: [{ type: 'text_appended', turn: 1, text: `${'漢字 '.repeat(200)}` }] });
    v.type('漢'.repeat(300));
    const frame = v.frame(columns, rows);
    expect(frame.rows.length).toBeLessThan(rows);
    for (const row of frame.rows) expect(columnsOf(row)).toBeLessThan(columns);
    expect(frame.cursor?.row).toBeLessThan(frame.rows.length);
    expect(frame.rows.some((row) => row.includes('漢漢'))).toBe(true);
  });

  test('the cursor stands where the next character goes, also in a text of several lines', () => {
    const v = view();
    v.type('漢');
    v.key('return', { meta: true });
    v.type('ab');
    v.key('left');
    expect(v.frame()).toMatchObject({
      rows: ['─'.repeat(79), 'steer › 漢', '        ab', '  connecting'],
      cursor: { row: 2, column: 9 },
    });
  });
});

test('a message stays in the queue until it is delivered, withdrawn or replaced by another', () => {
  const v = view();
  v.record([queued('m1', 'one'), queued('m2', 'two'), queued('m3', 'three'), streaming]);
  v.record([streaming], { edited: new Map([['m3', 'four']]) });
  const injections = [{ commandId: 'm1', origin: 'steer', text: 'one' } as const];
  v.record([{ type: 'seam_delivered', seam: 'iteration_start', turn: 1, injections, skippedCallIds: [], ...from }]);
  v.record([
    {
      type: 'control_reported',
      control: 'revoke',
      status: 'revoked',
      target: 'm2',
      callId: null,
      tool: null,
      by: null,
      reason: null,
      ...from,
    },
  ]);
  expect(v.state().queue).toMatchObject([{ commandId: 'm3', text: 'four' }]);
  expect(v.scrollback().join('\n')).toContain('withdraw m2 → withdrawn');
});

test('the up arrow brings back the first prompt, which this view did not send', () => {
  const v = view();
  v.record([{ type: 'prompt_shown', text: 'first', actor: null, ...from }]);
  v.key('up');
  expect(v.state().composer.before).toBe('first');
});

test('a call that ends is one folded line; Ctrl-O shows its arguments and output, and those of later calls', () => {
  const v = view();
  const output = 'ok\n2 passed\n';
  v.record([started('c1', 'run_command', { command: 'npm test' }, 'npm test'), ended('c1', 'run_command', 'ok')], {
    outputs: new Map([['c1', output]]),
  });
  const folded = ['  ✓ run_command npm test · 1.2 s', '    └ ok (+1 line)'];
  expect(v.scrollback()).toEqual(folded);
  v.key('o', { ctrl: true });
  const unfolded = [
    '  ✓ run_command npm test · 1.2 s',
    '    {',
    '      "command": "npm test"',
    '    }',
    '    │ ok',
    '    │ 2 passed',
  ];
  expect(v.scrollback()).toEqual([...folded, ...unfolded]);
});

describe('an approval', () => {
  const DIFF = [
    '  ? edit_file math.ts +1 -1 waits for an approval (c1)',
    '      a',
    '    - return a - b;',
    '    + return a + b;',
  ];

  test('shows a file edit as a diff, and other arguments whole, with nothing invisible in them', () => {
    const v = view();
    v.record([asks('c1', EDIT)]);
    expect(v.scrollback()).toEqual(DIFF);
    const hidden = view();
    hidden.record([asks('c1', { command: 'rm\u202e -rf', note: 'a' })]);
    expect(hidden.scrollback().slice(1)).toEqual([
      '    {',
      '      "command": "rm\\u202e -rf",',
      '      "note": "a"',
      '    }',
    ]);
    const edit = view();
    edit.record([asks('c1', { ...EDIT, new_text: 'a\nreturn\u200b 1;', replace_all: true })]);
    expect(edit.scrollback().slice(3)).toEqual([
      '    + return\\u200b 1;',
      '    {',
      '      "replace_all": true',
      '    }',
    ]);
  });

  test('shows a whole file as such: the call does not say whether the file exists', () => {
    const v = view();
    v.record([asks('c1', { path: 'plan.md', content: 'one\ntwo\n' })]);
    expect(v.scrollback()).toEqual([
      '  ? edit_file plan.md (whole file, 2 lines) waits for an approval (c1)',
      '    + one',
      '    + two',
    ]);
  });

  test('is decided by y, a or n and Enter; the next one is up at once, and Tab chooses another', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [ONE, TWO, THREE] });
    expect(v.frame().rows[0]).toBe('  ? allow edit_file math.ts +1 -1 (1 of 3; Tab: the next)');
    v.key('tab');
    for (const answer of ['a', 'n', 'y']) {
      v.type(answer);
      v.enter();
    }
    expect(v.effects).toMatchObject([
      { asked: { callId: 'c2' }, command: { decision: 'allow', remember: 'session' } },
      { asked: { callId: 'c3' }, command: { decision: 'deny' } },
      { asked: { callId: 'c1' }, command: { decision: 'allow' } },
    ]);
  });

  test('is gone once another person has decided it', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [approval('c1', EDIT), approval('c2', EDIT)] });
    v.record([{ type: 'approval_settled', callId: 'c1', decision: 'deny', by: 'ada', reason: null, ...from }]);
    expect(v.state().approvals).toMatchObject([{ callId: 'c2' }]);
  });

  test('takes edited arguments, once they are a JSON object', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [approval('c1', { amount: 1 })] });
    v.type('e');
    v.enter();
    expect(v.state().composer).toMatchObject({ kind: 'args', before: '{\n  "amount": 1\n}' });
    v.key('backspace');
    v.enter();
    expect(v.scrollback().join()).toContain('not valid JSON');
    v.key('u', { ctrl: true });
    v.type(', "currency": "EUR" }');
    v.enter();
    expect(v.effects).toMatchObject([{ asked: { callId: 'c1' }, command: { args: { amount: 1, currency: 'EUR' } } }]);
    expect(v.state().composer).toMatchObject({ kind: 'steer', before: '' });
  });

  test('keeps its edited arguments, whichever calls come and go meanwhile', () => {
    const v = view();
    const [one, two] = [approval('c1', { amount: 1 }), approval('c2', { amount: 2 })];
    v.take({ type: 'approvals', approvals: [one, two] });
    v.type('e');
    v.enter();
    v.take({ type: 'key', text: '\t', key: { name: 'tab', sequence: '\t' } });
    v.record([{ type: 'approval_settled', callId: 'c1', decision: 'deny', by: 'ada', reason: null, ...from }]);
    v.enter();
    expect(v.effects).toEqual([]);
    expect(v.scrollback().join()).toContain('this call is already decided');
    expect(v.state().composer).toMatchObject({ kind: 'args', before: '{\n  "amount": 1\n}\t' });
    v.take({ type: 'approvals', approvals: [two, one] });
    v.enter();
    expect(v.effects).toMatchObject([{ asked: { callId: 'c1' }, command: { args: { amount: 1 } } }]);
  });

  test('is not shown again while its decision is being sent', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [ONE] });
    v.type('y');
    v.enter();
    v.take({ type: 'approvals', approvals: [ONE, TWO] });
    expect(v.state().approvals).toEqual([TWO]);
  });

  test('is shown again if its decision fails, after the selected one, unless another person has decided it', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [ONE, TWO, THREE] });
    for (let n = 0; n < 2; n++) {
      v.type('y');
      v.enter();
    }
    v.record([{ type: 'approval_settled', callId: 'c1', decision: 'deny', by: 'ada', reason: null, ...from }]);
    v.take({ type: 'undecided', approval: ONE });
    v.take({ type: 'undecided', approval: TWO });
    expect(v.state().approvals).toEqual([THREE, TWO]);
  });

  test('stays selected when another one is requested', () => {
    const v = view();
    v.take({ type: 'approvals', approvals: [ONE, TWO] });
    v.key('tab');
    v.take({ type: 'approvals', approvals: [ONE, TWO, THREE] });
    v.type('y');
    v.enter();
    expect(v.effects).toMatchObject([{ asked: { callId: 'c2' } }]);
  });
});

test('after a rejected decision, the next answer goes to the same call and not to the model', async () => {
  const answers: string[] = [];
  const session = {
    id: 's1',
    approve: async (callId: string) => {
      answers.push(`approve ${callId}`);
      throw Object.assign(new Error('amount must be a number'), { code: 'invalid_arguments' });
    },
    deny: async (callId: string) => answers.push(`deny ${callId}`),
    steer: async (text: string) => answers.push(text),
  } as unknown as Session;
  const keyboard = Object.assign(new PassThrough(), { setRawMode: () => undefined }) as unknown as ReadStream;
  const live = new LiveView(new PassThrough() as unknown as WriteStream, createStyle(false));
  live.attend(keyboard, { session, leave: () => undefined });
  live.approvalsOpen([{ ...approval('c1', EDIT), session }]);
  for (const answer of ['y', 'n']) {
    keyboard.emit('keypress', answer, { name: answer });
    keyboard.emit('keypress', '\r', { name: 'return' });
    await live.sent();
  }
  live.close();
  expect(answers).toEqual(['approve c1', 'deny c1']);
});

test('Ctrl-C asks: d or Ctrl-C again detaches, c cancels, any other key stays; between two runs it leaves', () => {
  const v = view();
  v.key('c', { ctrl: true });
  expect(v.frame().rows).toContain('leave?');
  v.type('x');
  v.key('c', { ctrl: true });
  v.type('c');
  v.key('c', { ctrl: true });
  v.key('c', { ctrl: true });
  expect(v.effects).toMatchObject([{ do: 'send', command: { do: 'cancel' } }, { do: 'leave' }]);
  v.record([
    {
      type: 'run_ended',
      run: 1,
      stopReason: 'end_turn',
      turns: 1,
      usage,
      costUsd: null,
      pending: 0,
      error: null,
      reason: null,
      ...from,
    },
  ]);
  v.key('c', { ctrl: true });
  expect(v.effects.at(-1)).toEqual({ do: 'leave' });
});

test('a paste after Ctrl-C is one message and no answer', () => {
  const v = view();
  v.key('c', { ctrl: true });
  v.key('paste-start');
  v.type('c');
  v.enter();
  v.type('d');
  v.key('paste-end');
  expect(v.state()).toMatchObject({ isLeaving: false, composer: { before: 'c\nd' } });
  expect(v.effects).toEqual([]);
});

test('text of models and tools writes no control sequence to the terminal', () => {
  const v = view();
  const evil = '\u001b[2J\u009b31m\u001b]0;title\u0007\rx';
  v.record([
    { type: 'run_started', run: 1, persona: null, model: `a/${evil}`, ...from },
    started('c1', evil, { command: evil }, evil),
    asks('c2', { path: evil, old_text: evil, new_text: `${evil}1` }),
  ]);
  v.take({ type: 'approvals', approvals: [{ ...approval('c2', { path: evil }), tool: evil }] });
  v.record([queued('m1', evil), streaming]);
  v.take({ type: 'live', events: [{ type: 'call_progressed', callId: 'c1', tool: evil, text: evil }] });
  v.take({ type: 'live', events: [{ type: 'reasoning_appended', turn: 1, text: evil }] });
  v.take({
    type: 'live',
    events: [{ type: 'text_appended', turn: 1, text: `# ${evil}\n\n\`\`\`\n${evil}\n\`\`\`\n[a](${evil})` }],
  });
  const live = v.frame(400).rows;
  v.record([ended('c1', evil, evil)], { outputs: new Map([['c1', 'ok']]) });
  v.take({ type: 'notice', text: evil, tone: 'dim' });
  v.key('o', { ctrl: true });
  v.take({ type: 'close' });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these must not pass
  for (const row of [...live, ...v.scrollback()]) expect(row).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test('the cursor is visible after each update, also without a keyboard: Ctrl-Z and a kill leave it as it is', () => {
  let written = '';
  const region = new LiveRegion({ write: (text) => (written += text) });
  region.update(['done'], { rows: ['live'], cursor: null });
  expect(written.lastIndexOf('\u001b[?25h')).toBeGreaterThan(written.lastIndexOf('\u001b[?25l'));
});

test('finished rows become scrollback above the live rows, which are replaced in place', () => {
  const screen: string[] = [''];
  let [row, column] = [0, 0];
  const put = (text: string) => {
    const line = (screen[row] ?? '').padEnd(column);
    screen[row] = `${line.slice(0, column)}${text}${line.slice(column + text.length)}`;
    column += text.length;
  };
  const move = (sequence: string) => {
    const [, count, command] = /^\[\??(\d*)([A-Za-z])/.exec(sequence) ?? [];
    if (command === 'A') row -= Number(count || 1);
    if (command === 'C') column += Number(count || 1);
    if (command === 'K' || command === 'J') screen[row] = (screen[row] ?? '').slice(0, column);
    if (command === 'J') screen.length = row + 1;
    return sequence.replace(/^\[\??\d*[A-Za-z]/, '');
  };
  const write = (text: string) => {
    for (const [index, part] of text.split('\u001b').entries()) {
      for (const piece of (index === 0 ? part : move(part)).split(/(\r|\n)/)) {
        if (piece === '\r') column = 0;
        else if (piece === '\n') {
          row += 1;
          screen[row] ??= '';
        } else put(piece);
      }
    }
  };
  const region = new LiveRegion({ write });
  region.update([], { rows: ['live one', 'live two', '› typed'], cursor: { row: 2, column: 3 } });
  expect([row, column]).toEqual([2, 3]);
  region.update(['done'], { rows: ['live', '› typed', 'state'], cursor: { row: 1, column: 2 } });
  expect(screen).toEqual(['done', 'live', '› typed', 'state']);
  region.update([], { rows: ['›'], cursor: { row: 0, column: 1 } });
  expect(screen).toEqual(['done', '›']);
  region.update(['end'], { rows: [], cursor: null });
  region.clear();
  expect(screen).toEqual(['done', 'end', '']);
});
