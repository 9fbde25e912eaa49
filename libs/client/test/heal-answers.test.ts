/** Deltas that a reader has missed: whatever is lost, and whenever it joins, it gets the answer dense and once. */
import { type AnswerPieces, type AnswerPlace, AnswerSoFar, type Delta, GENESIS_HASH } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { AnswerHealer } from '../src/heal-answers.ts';
import { createEventTranslator, type UiEvent } from '../src/mod.ts';

const head = { type: 'message_update', session_id: 's', effect_id: '1-0', epoch: 1, attempt: 1, turn: 1 } as const;
const PARTS = [
  ['reasoning', 'Let me '],
  ['reasoning', 'think.'],
  ['text', 'One, '],
  ['text', 'two 😀, '],
  ['reasoning', ' More?'],
  ['text', 'three.'],
] as const;
const lengths = { text: 0, reasoning: 0 };
const ANSWER: readonly Delta[] = PARTS.map(([kind, text], index) => {
  const offset = lengths[kind];
  lengths[kind] += text.length;
  return { ...head, index, kind, offset, text };
});

const textOf = (kind: 'text' | 'reasoning', deltas: readonly { readonly kind: string; readonly text: string }[]) =>
  deltas.map((delta) => (delta.kind === kind ? delta.text : '')).join('');
const shownOf = (type: UiEvent['type'], events: readonly UiEvent[]) =>
  events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');

/** A host that streams, a reader, and the way between them. */
class Wire {
  readonly host = new AnswerSoFar();
  readonly got: Delta[] = [];
  readonly healer: AnswerHealer;
  asked = 0;
  #pending: { readonly reply: AnswerPieces | null; readonly resolve: (reply: AnswerPieces | null) => void }[] = [];

  constructor({ answers = true, pieceMax = 1_000 } = {}) {
    this.healer = new AnswerHealer({
      ask: (from: AnswerPlace | null) =>
        new Promise((resolve) => {
          this.asked++;
          // What the host knows when it is asked; the reply may arrive later than deltas that it streams after that.
          this.#pending.push({ reply: answers ? this.host.after(from, pieceMax) : null, resolve });
        }),
      deliver: (delta) => this.got.push(delta),
    });
  }

  /** Has replies arrive, and those to what is asked then. */
  async replies(): Promise<void> {
    while (this.#pending.length > 0) {
      for (const { reply, resolve } of this.#pending.splice(0)) resolve(reply);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** What the reader has, through the one translator, with the record of the answer at the end. */
  shown(): { readonly before: UiEvent[]; readonly all: UiEvent[] } {
    const translator = createEventTranslator({ after: 1 });
    const before = this.got.flatMap((delta) => translator.delta(delta));
    const content = [
      { type: 'reasoning' as const, text: textOf('reasoning', ANSWER) },
      { type: 'text' as const, text: textOf('text', ANSWER) },
    ];
    const complete = translator.record({
      ...{ v: 1, session_id: 's', n: 2, epoch: 1, attempt: 'a', prev_hash: GENESIS_HASH, at: '', effects_open: [] },
      ...{ input: { type: 'model_outcome', effect_id: '1-0' } as never, state: 'steering_check' },
      events: [
        {
          ...{ type: 'message_complete', turn: 1, message: { role: 'assistant', content }, finish_reason: 'stop' },
          ...{ usage: { input_tokens: 1, output_tokens: 1 }, body_streamed: true, duration_ms: 1, attempts: 1 },
        },
      ],
    });
    return { before, all: [...before, ...complete] };
  }

  expectDense(): void {
    const at = { text: 0, reasoning: 0 };
    for (const { kind, offset, text } of this.got as (Delta & { kind: 'text' | 'reasoning' })[]) {
      expect(offset).toBe(at[kind]);
      at[kind] += text.length;
    }
  }
}

const upTo = (count: number) => ANSWER.slice(0, count);
const SUBSETS = Array.from({ length: 2 ** ANSWER.length }, (_, bits) =>
  ANSWER.map((_delta, at) => (bits >> at) % 2 === 1),
);

describe.each([
  ['at once', 0],
  ['after the next delta', 1],
  ['after three deltas', 3],
])('with replies that arrive %s', (_when, late) => {
  test.each(SUBSETS.map((lost) => [lost.map((is) => (is ? '-' : 'x')).join(''), lost] as const))(
    'whatever is lost (%s), the answer is dense, and whole at its end',
    async (_name, lost) => {
      const wire = new Wire();
      for (const [at, delta] of ANSWER.entries()) {
        wire.host.take(delta);
        if (!lost[at]) wire.healer.take(delta);
        if (at % (late + 1) === late) await wire.replies();
      }
      await wire.replies();
      wire.expectDense();
      // A delta that is lost shows by the next one of its kind; until then the reader has all before it.
      for (const kind of ['text', 'reasoning'] as const) {
        const last = ANSWER.findLastIndex((delta, at) => delta.kind === kind && !lost[at]);
        expect(textOf(kind, wire.got).length).toBeGreaterThanOrEqual(textOf(kind, upTo(last + 1)).length);
      }
      const { all } = wire.shown();
      expect(all.filter(({ type }) => type === 'answer_restarted')).toEqual([]);
      expect(shownOf('text_appended', all)).toBe(textOf('text', ANSWER));
      expect(shownOf('reasoning_appended', all)).toBe(textOf('reasoning', ANSWER));
    },
  );

  test.each(ANSWER.map((_delta, at) => [at]))(
    'joining at delta %i shows the answer so far, then the rest',
    async (at) => {
      const wire = new Wire({ pieceMax: 4 });
      for (const delta of upTo(at)) wire.host.take(delta);
      wire.healer.join();
      if (late === 0) {
        await wire.replies();
        // Without any further delta.
        expect(shownOf('text_appended', wire.shown().before)).toBe(textOf('text', upTo(at)));
      }
      for (const [index, delta] of ANSWER.slice(at).entries()) {
        wire.host.take(delta);
        wire.healer.take(delta);
        if (index + 1 === late) await wire.replies();
      }
      await wire.replies();
      wire.expectDense();
      expect(textOf('text', wire.got)).toBe(textOf('text', ANSWER));
      expect(textOf('reasoning', wire.got)).toBe(textOf('reasoning', ANSWER));
    },
  );
});

test('a reader that has all deltas asks for nothing', async () => {
  const wire = new Wire();
  for (const delta of ANSWER) wire.healer.take(delta);
  expect(wire.asked).toBe(0);
  expect(wire.got).toEqual(ANSWER);
});

test('where no host replies, it asks three times for a gap, and the record brings the whole', async () => {
  const wire = new Wire({ answers: false });
  wire.healer.take(ANSWER[2] as Delta);
  wire.healer.take(ANSWER[5] as Delta);
  await wire.replies();
  expect(wire.asked).toBe(3);
  expect(shownOf('text_appended', wire.shown().all)).toBe(textOf('text', ANSWER));
});

test('after the record of an answer nothing of it is delivered, and what waits behind its gap is dropped', async () => {
  const wire = new Wire();
  for (const delta of ANSWER) wire.host.take(delta);
  wire.healer.take(ANSWER[5] as Delta);
  wire.healer.ended('1-0');
  await wire.replies();
  expect(wire.got).toEqual([]);
});
