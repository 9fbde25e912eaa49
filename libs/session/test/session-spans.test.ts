/** Spans folded from journals: from every golden journal, and over a takeover. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log, SpanSink, StoredRecord, Telemetry } from '@coxswain/ports';
import {
  type EndedSpan,
  formatTraceparent,
  type JournalRecord,
  parseTraceparent,
  sessionRef,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { LoadTurns } from '../src/load-turns.ts';
import { contentText } from '../src/trace/gen-ai-attributes.ts';
import { SessionObserver } from '../src/trace/observe-session.ts';
import { SessionSpans } from '../src/trace/session-spans.ts';
import { callSpanId, traceForChild, traceOfRun } from '../src/trace/trace-ids.ts';

const folder = join(import.meta.dirname, '../../../tests/traces');
const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => undefined, yield: async () => undefined };
const log: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** The records of each golden journal; of those whose large fields lie apart, none. */
const GOLDEN = readdirSync(folder)
  .filter((name) => name.endsWith('.jsonl'))
  .map((name) => ({
    name,
    lines: readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== ''),
  }))
  .filter(({ lines }) => !lines.some((line) => line.includes('"blobs":[')))
  .map(({ name, lines }) => ({ name, records: lines.map((line) => JSON.parse(line) as JournalRecord) }));

const refOf = ([first]: readonly JournalRecord[]) => sessionRef(first?.session_id ?? '', 'default');

function folded(records: readonly JournalRecord[]) {
  const fold = new SessionSpans(refOf(records));
  const spans = records.flatMap((record) => [...fold.take(record)]);
  return { fold, spans };
}

test('there are golden journals to fold', () => expect(GOLDEN.length).toBeGreaterThan(100));

describe('the spans of a journal stand in order:', () => {
  test.each(GOLDEN)('$name', ({ records }) => {
    const { fold, spans } = folded(records);
    const all = [...spans, ...fold.open(Date.parse(records.at(-1)?.at ?? ''))];
    const known = new Map(all.map((span) => [span.context.spanId, span]));
    // Each has an id of its own, and none ends before it begins.
    expect(known.size).toBe(all.length);
    for (const { name, startMs, endMs } of all) expect(endMs, name).toBeGreaterThanOrEqual(startMs);
    // Whatever is below a span of the session is in its trace and does not begin before it.
    for (const { name, context, parent, startMs, attributes } of all) {
      const above = parent && known.get(parent.spanId);
      if (attributes['gen_ai.operation.name'] === 'invoke_agent') continue;
      expect(above, `${name} hangs loose`).toBeTruthy();
      expect(context.traceId).toBe(above?.context.traceId);
      expect(startMs, name).toBeGreaterThanOrEqual(above?.startMs ?? 0);
    }
  });

  test.each(GOLDEN)('$name: a span for each run, turn, answer and call', ({ records }) => {
    // What was copied is the origin's.
    const first = records[0]?.input;
    if (first?.type === 'command' && first.copied_from) return;
    const { spans } = folded(records);
    const events = records.flatMap((record) => record.events);
    const count = (fits: (span: EndedSpan) => boolean) => spans.filter(fits).length;
    const of = (operation: string) => count(({ attributes }) => attributes['gen_ai.operation.name'] === operation);
    const happened = (type: string) => events.filter((event) => event.type === type).length;
    const answers = records.filter(({ input }) => input.type === 'model_outcome' || input.type === 'compact_outcome');
    expect(of('invoke_agent')).toBe(happened('agent_end'));
    expect(of('execute_tool')).toBe(happened('call_ended'));
    expect(of('chat')).toBe(answers.length);
    expect(count(({ name }) => name.startsWith('turn '))).toBe(happened('turn_end'));
  });
});

test('a takeover goes on with the spans that an earlier owner has left open, and hands none on twice', async () => {
  const records = GOLDEN.find(({ name }) => name === 'tool-calls.jsonl')?.records ?? [];
  const whole = folded(records).spans;
  for (let taken = 1; taken < records.length; taken++) {
    const got: EndedSpan[][] = [[], []];
    const observer = (owner: 0 | 1) => {
      const spans: SpanSink = {
        capturesContent: false,
        keeps: () => true,
        masked: (text) => text,
        take: (span) => void got[owner]?.push(span),
      };
      const meters = { add() {}, observe() {}, census() {} } satisfies Telemetry['meters'];
      const stored = records.map((record, index): StoredRecord => ({ bytes: bytesOf(record), fence: index + 1 }));
      const journal = {
        read: async function* () {
          yield* stored;
        },
      };
      const ports = { telemetry: { meters, spans }, journal, blobs: { get: async () => null }, clock, log };
      return new SessionObserver(ports, refOf(records), new LoadTurns(clock));
    };
    const [first, second] = [observer(0), observer(1)];
    for (const record of records.slice(0, taken)) first.recorded(record, NO_STEP, null);
    for (const record of records.slice(taken)) second.recorded(record, NO_STEP, null);
    await expect.poll(() => got.flat().length).toBe(whole.length);
    expect(got.flat()).toEqual(whole);
  }
});

const bytesOf = (record: JournalRecord) => Buffer.from(JSON.stringify(record));
// Meters are held elsewhere.
const NO_STEP = {
  before: null,
  after: { context: { total_usage: { input_tokens: 0, output_tokens: 0 }, total_cost: 0, pinned: null } },
} as unknown as Parameters<SessionObserver['recorded']>[1];

describe('what was said, as spans have it', () => {
  test.each([
    ['connected to nats://tokABC123456@127.0.0.1:4222', 'connected to nats://[redacted]@127.0.0.1:4222'],
    ['git clone https://abcdef0123456789@example.com/x', 'git clone https://[redacted]@example.com/x'],
    [
      'GET https://example.com/x?access_token=qqqwwweee&page=2',
      'GET https://example.com/x?access_token=[redacted]&page=2',
    ],
    ['DB_PASSWORD=hunter2-swordfish\nPORT=5432', 'DB_PASSWORD=[redacted]\nPORT=5432'],
    ['{"api_key": "abcdefgh1234", "user": "ada"}', '{"api_key": "[redacted]", "user": "ada"}'],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic [redacted]'],
    ['password: hunter2-swordfish', 'password: [redacted]'],
  ])('is without the secret of %j', (said, shown) => {
    expect(JSON.parse(contentText([{ type: 'text', text: said }], (text) => text))).toEqual([
      { type: 'text', text: shown },
    ]);
    // As a tool returns JSON in JSON.
    const quoted = JSON.parse(contentText({ body: JSON.stringify({ said }) }, (text) => text)) as { body: string };
    expect(JSON.parse(quoted.body)).toEqual({ said: shown });
  });

  test.each([
    'the token was refused; 300 tokens in',
    'git clone ssh://git@example.com/x',
    'mail ada@example.com, see https://example.com/@ada',
    'const password = readPassword()',
  ])('is as it was where nothing looks like a secret: %j', (said) => {
    expect(JSON.parse(contentText({ said }, (text) => text))).toEqual({ said });
  });
});

describe('ids', () => {
  const ref = sessionRef('s1', 'red');
  const alone = { ref, trace: undefined, parent: null };
  const caller = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

  test('the first run stands below whoever has started the session', () => {
    const { context, parent } = traceOfRun({ ...alone, trace: caller }, 1);
    expect(context).toMatchObject({ traceId: 'a'.repeat(32), sampled: true });
    expect(parent).toEqual(parseTraceparent(caller));
    expect(traceOfRun(alone, 1).parent).toBeNull();
  });

  test('a child’s run stands below its call, in the trace of the run that has started it', () => {
    for (const run of [1, 2]) {
      const link = { session: 's1', call_id: 'c', turn: 3, root: 's1' };
      const child = { ref: sessionRef('s2', 'red'), trace: traceForChild(alone, run), parent: link };
      const { context, parent } = traceOfRun(child, 1);
      expect(context.traceId).toBe(traceOfRun(alone, run).context.traceId);
      expect(parent?.spanId).toBe(callSpanId(ref, 3, 'c'));
    }
  });

  test('what was forked from a child is nobody’s', () => {
    const link = { session: 's1', call_id: 'c', turn: 3, root: 's1', detached: true as const };
    expect(traceOfRun({ ref: sessionRef('f', 'red'), trace: undefined, parent: link }, 1).parent).toBeNull();
  });

  test('a trace that nobody keeps is kept by nobody below', () => {
    const unkept = { ...alone, trace: caller.replace(/01$/, '00') };
    for (const run of [1, 2]) expect(traceOfRun(unkept, run).context.sampled).toBe(false);
  });

  test('sessions of the same id in two tenants have nothing in common', () => {
    const other = traceOfRun({ ...alone, ref: sessionRef('s1', 'blue') }, 1).context;
    const own = traceOfRun(alone, 1).context;
    expect(other.traceId).not.toBe(own.traceId);
    expect(other.spanId).not.toBe(own.spanId);
  });

  test('what is no traceparent is a name', () => {
    const broken = [
      '',
      '00',
      `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
      `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      `${caller}-x`,
    ];
    expect(broken.map((text) => parseTraceparent(text))).toEqual(broken.map(() => null));
    // A later version may say more.
    expect(parseTraceparent(`${caller.replace(/^00/, '01')}-more`)).toMatchObject({ traceId: 'a'.repeat(32) });
    expect(formatTraceparent(parseTraceparent(caller) as never)).toBe(caller);
  });
});

test.each(GOLDEN.filter(({ name }) => /^cancel-wh|^cancel-with|^crew-cancelled/.test(name)))(
  '$name: the run and the turn that it ended in say that they were cancelled',
  ({ records }) => {
    const { spans } = folded(records);
    const runs = spans.filter(({ attributes }) => attributes['coxswain.stop_reason'] === 'cancelled');
    expect(runs.length).toBeGreaterThan(0);
    for (const run of runs) {
      const turns = spans.filter(
        ({ name, parent }) => name.startsWith('turn ') && parent?.spanId === run.context.spanId,
      );
      const ends = turns.map(({ attributes }) => attributes['coxswain.status']);
      // Those before it went well.
      expect(ends).toEqual(turns.map((_, index) => (index === turns.length - 1 ? 'cancelled' : undefined)));
    }
  },
);
