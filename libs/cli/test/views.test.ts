import { createEventTranslator, type UiEvent } from '@coxswain/client';
import { GENESIS_HASH, type JournalRecord, type SessionEvent } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { Screen } from '../src/terminal/screen.ts';
import { jsonView, plainView } from '../src/terminal/session-view.ts';
import { createStyle } from '../src/terminal/style.ts';

const plain = createStyle(false);
const from = { n: 1, at: '2026-01-01T00:00:00.000Z' };
const usage = { input_tokens: 1_200, output_tokens: 5 };

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
  { type: 'answer_ended', turn: 1, partial: false, finish_reason: 'stop', usage, ...from },
];
const call: UiEvent = { type: 'call_started', call_id: 'c', tool: 't', args: {}, summary: 'x', ...from };
const end: UiEvent = {
  type: 'run_ended',
  run: 1,
  stop_reason: 'end_turn',
  turns: 2,
  usage,
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

  test.each([
    [1, '  1 message waits for the next run\n'],
    [2, '  2 messages wait for the next run\n'],
  ])('what is left over is counted: %i', (pending, said) => {
    const { written, streams } = capture();
    const view = plainView(streams, plain);
    view.live([{ ...end, pending } as UiEvent]);
    view.close();
    expect(written.err).toContain(said);
  });

  test('an answer that begins again is not shown twice', () => {
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

  test('a text that no run’s end followed is not lost', () => {
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
    { type: 'turn_end', turn: 1, usage },
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

describe('on a screen', () => {
  function screen(columns = 40) {
    let written = '';
    const made = new Screen({ write: (text) => (written += text), columns }, plain);
    return { screen: made, written: () => written };
  }

  test('what is typed keeps its line, and output waits for the end of the typing', () => {
    const { screen: lower, written } = screen();
    lower.text('stream');
    lower.typing({ label: 'steer ›', text: 'h' });
    lower.text('ing on');
    expect(written()).toBe('stream\nsteer › h');
    lower.typing(null);
    expect(written().endsWith('\r\u001b[King on')).toBe(true);
  });

  test('a long line shows its end, where one types', () => {
    const { screen: lower, written } = screen(20);
    lower.typing({ label: '›', text: 'abcdefghijklmnopqrstuvwxyz' });
    expect(written()).toBe('› …klmnopqrstuvwxyz');
  });

  test('the status is wiped before anything is written, and at the end', () => {
    const { screen: lower, written } = screen();
    lower.status('thinking');
    lower.line('x');
    lower.close();
    expect(written().replaceAll('\r\u001b[K', '|')).toBe('⠋ thinking|x\n⠋ thinking|');
  });
});
