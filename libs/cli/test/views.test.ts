import { createEventTranslator, type UiEvent } from '@coxswain/client';
import { GENESIS_HASH, type JournalRecord, type SessionEvent } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import {
  budgetLine,
  createStyle,
  dollars,
  eventLine,
  jsonView,
  plainView,
  streamView,
  table,
  usageTable,
} from '../src/terminal/mod.ts';

const plain = createStyle(false);
const from = { n: 1, at: '2026-01-01T00:00:00.000Z' };
const usage = { inputTokens: 1_200, outputTokens: 5 };

function capture() {
  const written = { out: '', err: '' };
  return {
    written,
    streams: {
      out: (text: string) => {
        written.out += text;
      },
      err: (text: string) => {
        written.err += text;
      },
    },
  };
}

const answer = (text: string): UiEvent[] => [
  { type: 'text_appended', turn: 1, text },
  { type: 'answer_ended', turn: 1, partial: false, finishReason: 'stop', usage, ...from },
];
const call: UiEvent = { type: 'call_started', callId: 'c', tool: 't', args: {}, summary: 'x', ...from };
const end: UiEvent = {
  type: 'run_ended',
  run: 1,
  stopReason: 'end_turn',
  turns: 2,
  usage,
  costUsd: null,
  pending: 0,
  error: null,
  reason: null,
  ...from,
};

describe('without a terminal', () => {
  test('the last answer goes to stdout, everything else to stderr', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live(answer('first I look'));
    view.live([call]);
    view.live(answer('it is done'));
    view.live([end]);
    view.close();
    expect(written.out).toBe('it is done\n');
    expect(written.err).toBe('first I look\n  ▸ t x\n● stopped (end_turn) · 2 turns · 1,200 tokens in, 5 out\n');
  });

  test('a watched session writes each piece of every answer to stdout at once', () => {
    const { written, streams } = capture();
    const view = streamView(streams, plain);
    view.live([{ type: 'text_appended', turn: 1, text: 'first ' }]);
    expect(written.out).toBe('first ');
    view.live([...answer('I look'), call, ...answer('it is done'), end]);
    view.close();
    expect(written.out).toBe('first I look\nit is done\n');
    expect(written.err).toBe('  ▸ t x\n● stopped (end_turn) · 2 turns · 1,200 tokens in, 5 out\n');
  });

  test('the value of a structured output goes to stdout, and nothing if no answer fits the schema', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live([...answer('```json\n{"a": 1}\n```'), { ...end, output: { a: 1 } }]);
    expect(written.out).toBe('{\n  "a": 1\n}\n');
    const error = { code: 'output_invalid', message: 'a: must be number' };
    view.live([...answer('sorry'), { ...end, stopReason: 'error', error }]);
    expect(written.out).toBe('{\n  "a": 1\n}\n');
    expect(written.err).toMatch(/^sorry$/m);
  });

  test('the value of a structured output has no character that controls a terminal, and is the same value', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    const output = { a: 'one\u009b2J two\u202e' };
    view.live([...answer('done'), { ...end, output }]);
    expect(written.out).toBe('{\n  "a": "one\\u009b2J two\\u202e"\n}\n');
    expect(JSON.parse(written.out)).toEqual(output);
  });

  test.each([
    [1, '  1 message waits for the next run\n'],
    [2, '  2 messages wait for the next run\n'],
  ])('messages that wait for the next run are counted: %i', (pending, said) => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live([{ ...end, pending } as UiEvent]);
    view.close();
    expect(written.err).toContain(said);
  });

  test('the answer of a daemon before it idles goes to stdout once', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live(answer('the first job is done'));
    view.live([{ type: 'state_changed', state: { daemon_idle: 'waiting' }, ...from }]);
    expect(written).toEqual({ out: 'the first job is done\n', err: '' });
    view.live([{ type: 'turn_started', turn: 2, ...from }]);
    view.live(answer('so is the second'));
    view.live([end]);
    view.close();
    expect(written.out).toBe('the first job is done\nso is the second\n');
    expect(written.err).not.toContain('done');
  });

  test('an answer that restarts is printed once', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live([
      { type: 'text_appended', turn: 1, text: 'lost' },
      { type: 'answer_restarted', turn: 1 },
    ]);
    view.live(answer('kept'));
    view.live([end]);
    expect(written.out).toBe('kept\n');
  });

  const interrupted: UiEvent[] = [
    { type: 'text_appended', turn: 1, text: 'half' },
    { type: 'answer_ended', turn: 1, partial: true, finishReason: 'stop', usage, ...from },
  ];

  test('the text of an interrupted answer comes before the line about the interruption', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live(interrupted);
    view.live([call]);
    expect(written.err).toBe('half\n  (this answer was interrupted here)\n  ▸ t x\n');
    view.live([...answer('whole'), end]);
    expect(written.out).toBe('whole\n');
  });

  test('the text of a cancelled run goes to stdout before the line about the interruption', () => {
    const order: string[] = [];
    const view = plainView({ out: (text) => order.push(text), err: (text) => order.push(text) }, plain);
    view.live([...interrupted, end]);
    expect(order.slice(0, 2)).toEqual(['half\n', '  (this answer was interrupted here)\n']);
  });

  test('a text without an end of its run is printed at the close', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live(answer('half way'));
    view.close();
    expect(written).toEqual({ out: '', err: 'half way\n' });
  });
});

test('as JSON every event is a line with its session, record and time', () => {
  const { written, streams } = capture();
  const events: SessionEvent[] = [
    { type: 'turn_start', turn: 1 },
    { type: 'turn_end', turn: 1, usage: { input_tokens: 1, output_tokens: 2 } },
  ];
  const record: JournalRecord = {
    v: 1,
    session_id: 's1',
    n: 3,
    epoch: 1,
    attempt: 'a',
    prev_hash: GENESIS_HASH,
    at: from.at,
    input: { type: 'owned', epoch: 1, host: 'h' },
    events,
    state: 'provisioning',
    effects_open: [],
  };
  jsonView(streams).record(record, createEventTranslator().record(record));
  expect(
    written.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(events.map((event) => ({ session_id: 's1', n: 3, at: from.at, ...event })));
});

describe('the usage of a session', () => {
  test('has a line for each run, and one for all', () => {
    const one = { run: 1, persona: 'mate', model: 'a/b', turns: 1, usage, costUsd: 0.0123, stopReason: null };
    const runs = [one, { ...one, run: 2, turns: 2, costUsd: null, stopReason: 'budget_exceeded' as const }];
    const alone = { persona: 'mate', model: 'a/b', personas: [{ ...one, turns: 3 }] };
    expect(usageTable({ ...alone, runs, usage, costUsd: null })).toBe(
      [
        'run 1  1,200 in  0 cached  5 out  $0.0123        1 turn on a/b   in progress\n',
        'run 2  1,200 in  0 cached  5 out  unknown price  2 turns on a/b  stopped (budget_exceeded)\n',
        'all    1,200 in  0 cached  5 out  unknown price\n',
      ].join(''),
    );
  });

  test('has a line for each persona if there are several', () => {
    const run = { run: 1, persona: 'desk', model: 'a/b', turns: 3, usage, costUsd: 0.03, stopReason: null };
    const personas = [
      { persona: 'desk', model: 'a/b', turns: 1, usage, costUsd: 0.01 },
      { persona: 'clerk', model: 'a/c', turns: 2, usage, costUsd: 0.02 },
    ];
    const shared = { persona: 'clerk', model: 'a/c', personas, runs: [run], usage, costUsd: 0.03 };
    expect(usageTable(shared)).toBe(
      [
        'run 1  1,200 in  0 cached  5 out  $0.03  3 turns         in progress\n',
        'desk   1,200 in  0 cached  5 out  $0.01  1 turn on a/b\n',
        'clerk  1,200 in  0 cached  5 out  $0.02  2 turns on a/c\n',
        'all    1,200 in  0 cached  5 out  $0.03\n',
      ].join(''),
    );
  });

  test.each([
    [0, '$0.00'],
    [0.000_012, '$0.000012'],
    [0.012_345, '$0.0123'],
    [1, '$1.00'],
    [12.345, '$12.35'],
  ])('%d USD is %s', (usd, text) => {
    expect(dollars(usd)).toBe(text);
  });

  test('has a unit for each budget', () => {
    expect(budgetLine({ budget: 'tokens', used: 1_234, limit: 5_000 })).toBe('1,234 of 5,000 tokens');
    expect(budgetLine({ budget: 'usd', used: 0.1, limit: 2 })).toBe('$0.1 of $2.00');
    expect(budgetLine({ budget: 'wall_time_ms', used: 3_400, limit: 60_000 })).toBe('3.4 s of 1 min 0 s');
    expect(budgetLine({ budget: 'wall_time_ms', used: 119_700, limit: 125_000 })).toBe('2 min 0 s of 2 min 5 s');
  });

  test('has a line at each threshold but the last one, which ends the run', () => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    const reported = { type: 'budget_reported', budget: 'tokens', percent: 80, used: 80, limit: 100, ...from } as const;
    view.live([
      reported,
      { ...reported, percent: 100 },
      { ...end, stopReason: 'budget_exceeded', costUsd: 0.5 } as UiEvent,
    ]);
    view.close();
    expect(written.err).toBe(
      '  ! 80% of the budget: 80 of 100 tokens\n' +
        '● stopped (budget_exceeded) · 2 turns · 1,200 tokens in, 5 out · $0.5\n',
    );
  });
});

test('the first pieces of much feedback are shown, and the number of others; messages of people are shown whole', () => {
  const injections = [
    { commandId: 's', origin: 'steer', text: 'stop that' } as const,
    ...Array.from({ length: 64 }, (_, n) => ({
      commandId: `f${n}`,
      origin: 'feedback' as const,
      text: 'x'.repeat(2_048),
    })),
  ];
  const event: UiEvent = {
    type: 'seam_delivered',
    seam: 'iteration_start',
    injections,
    skippedCallIds: [],
    turn: 1,
    ...from,
  };
  const lines = (eventLine(event, plain) ?? '').split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[0]).toContain('stop that');
  expect(lines.at(-1)).toContain('and 61 more pieces of feedback');
});

test('the columns of a table are aligned, also next to characters of two columns or none', () => {
  const cells = ['ab', '漢字', 'e\u0301'];
  const rows = table(cells.map((cell) => [cell, 'x']));
  expect(rows).toBe('ab    x\n漢字  x\ne\u0301     x\n');
});

test('a cell with several lines stays in its row', () => {
  expect(
    table([
      ['suspended', 'for lunch\nstate  stopped'],
      ['run', '1'],
    ]),
  ).toBe('suspended  for lunch ⏎ state  stopped\nrun        1\n');
});

test.each([jsonView, plainView, streamView])('control characters in a notice are removed: %o', (create) => {
  const { written, streams } = capture();
  create(streams, plain).notice('a\u001b[2J\u202eb could not be denied');
  expect(written.err).toBe('a[2Jb could not be denied\n');
});

test('control characters in events and lists are removed: ids of calls, names of tools and actors', () => {
  const hostile = 'a\u001b[2J\u202eb';
  const events: UiEvent[] = [
    {
      type: 'approval_needed',
      callId: hostile,
      tool: hostile,
      args: {},
      summary: hostile,
      question: hostile,
      ...from,
    },
    { type: 'approval_settled', callId: hostile, decision: 'deny', by: hostile, reason: hostile, ...from },
    { type: 'control_reported', control: 'cancel', status: hostile, by: hostile, reason: hostile, tool: null, ...from },
  ] as unknown as UiEvent[];
  const lines = [...events.map((event) => eventLine(event, plain)), table([[hostile, hostile]])];
  for (const line of lines) {
    expect(line).toContain('a[2Jb');
    for (const control of ['\u001b', '\u202e']) expect(line).not.toContain(control);
  }
});
