/**
 * Spans folded from journals: every golden journal, and a claim by another host.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log, SpanSink, StoredRecord, Telemetry } from '@coxswain/ports';
import {
  type EndedSpan,
  formatTraceparent,
  type JournalRecord,
  parseTraceparent,
  sessionRef,
  userText,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { LoadLimit } from '../src/hosting/load-limit.ts';
import { contentText, inputMessages } from '../src/trace/gen-ai-attributes.ts';
import { SessionObserver } from '../src/trace/observe-session.ts';
import { LINKS_MAX } from '../src/trace/open-spans.ts';
import { SessionSpans } from '../src/trace/session-spans.ts';
import { callSpanId, traceForChild, traceOfRun } from '../src/trace/trace-ids.ts';
import { crewBed, delegate, say } from './crew-bed.ts';

const folder = join(import.meta.dirname, '../../../tests/traces');
const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => undefined, yield: async () => undefined };
const log: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** The records of each golden journal without large fields. */
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

const WITH_CONTENT = { capturesContent: true, keeps: () => true, masked: (text: string) => text };

function folded(records: readonly JournalRecord[], sink?: typeof WITH_CONTENT) {
  const fold = new SessionSpans(refOf(records), sink);
  const spans = records.flatMap((record) => [...fold.take(record)]);
  return { fold, spans };
}

test('there are golden journals to fold', () => expect(GOLDEN.length).toBeGreaterThan(100));

describe('the spans of a journal are in order:', () => {
  test.each(GOLDEN)('$name', ({ records }) => {
    const { fold, spans } = folded(records);
    const all = [...spans, ...fold.open(Date.parse(records.at(-1)?.at ?? ''))];
    const known = new Map(all.map((span) => [span.context.spanId, span]));
    // Each has a unique id, and none ends before its start.
    expect(known.size).toBe(all.length);
    for (const { name, startMs, endMs } of all) expect(endMs, name).toBeGreaterThanOrEqual(startMs);
    // A span below one of the session has its trace and does not start before it.
    for (const { name, context, parent, startMs, attributes } of all) {
      const above = parent && known.get(parent.spanId);
      if (attributes['gen_ai.operation.name'] === 'invoke_agent') continue;
      expect(above, `${name} hangs loose`).toBeTruthy();
      expect(context.traceId).toBe(above?.context.traceId);
      expect(startMs, name).toBeGreaterThanOrEqual(above?.startMs ?? 0);
    }
  });

  test.each(GOLDEN)('$name: a span for each run, turn, answer and call', ({ records }) => {
    // Copied records belong to the origin.
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

describe('content, if requested:', () => {
  const golden = (name: string) => GOLDEN.find((one) => one.name === name)?.records ?? [];
  const chats = (name: string) =>
    folded(golden(name), WITH_CONTENT).spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat');
  const parsed = (span: EndedSpan | undefined, name: string) => JSON.parse(String(span?.attributes[name]));

  test.each(GOLDEN)('$name: messages have a role and parts, as the conventions say', ({ records }) => {
    for (const { name, attributes } of folded(records, WITH_CONTENT).spans) {
      for (const which of ['gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions']) {
        const text = attributes[which];
        if (text === undefined) continue;
        const isList = which === 'gen_ai.system_instructions';
        const list = (isList ? [{ role: 'system', parts: JSON.parse(String(text)) }] : JSON.parse(String(text))) as {
          role: string;
          parts: { type: string }[];
        }[];
        const parts = list.flatMap((message) => message.parts);
        for (const part of parts)
          expect(part, `${which} of ${name}`).toMatchObject(PARTS[part.type] ?? { type: 'known' });
        for (const { role } of list) expect(['system', 'developer', 'user', 'assistant', 'tool']).toContain(role);
      }
      if (attributes['gen_ai.operation.name'] === 'chat')
        expect(attributes, name).toHaveProperty(['gen_ai.input.messages']);
    }
  });

  const PARTS: Readonly<Record<string, object>> = {
    text: { content: expect.any(String) },
    reasoning: { content: expect.any(String) },
    tool_call: { id: expect.any(String), name: expect.any(String) },
    tool_call_response: { id: expect.any(String), response: expect.any(Array) },
    file: { mime_type: expect.any(String), modality: expect.any(String) },
  };

  test('a chat span has the instructions and each message of its request', () => {
    const [first, second] = chats('tool-calls.jsonl');
    expect(first?.attributes).not.toHaveProperty(['gen_ai.system_instructions']);
    const instructed = JSON.parse(
      JSON.stringify(golden('tool-calls.jsonl')).replaceAll('"system_prompt":""', '"system_prompt":"Be brief."'),
    ) as JournalRecord[];
    const { spans } = folded(instructed, WITH_CONTENT);
    const chat = spans.find(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat');
    expect(parsed(chat, 'gen_ai.system_instructions')).toEqual([{ type: 'text', content: 'Be brief.' }]);
    const prompt = parsed(first, 'gen_ai.input.messages');
    expect(prompt).toMatchObject([{ role: 'user', parts: [{ type: 'text' }] }]);
    const [answer] = parsed(first, 'gen_ai.output.messages') as [{ role: string; parts: { id?: string }[] }];
    const { finish_reason: _, ...said } = answer as typeof answer & { finish_reason: string };
    const later = parsed(second, 'gen_ai.input.messages');
    expect(later.slice(0, 2)).toEqual([...prompt, said]);
    const ids = said.parts.flatMap(({ id }) => id ?? []);
    const results = later.slice(2) as { role: string; parts: { type: string; id: string }[] }[];
    expect(results.map(({ role, parts }) => [role, parts[0]?.type, parts[0]?.id])).toEqual(
      ids.map((id) => ['tool', 'tool_call_response', id]),
    );
  });

  test('a compaction span has its own instructions and the messages that it replaces', () => {
    const compaction = chats('compaction-summary.jsonl').find(
      ({ attributes }) => attributes['coxswain.purpose'] === 'compaction',
    );
    expect(parsed(compaction, 'gen_ai.system_instructions')[0].content).toContain('Write a summary');
    expect(parsed(compaction, 'gen_ai.input.messages').length).toBeGreaterThan(1);
    expect(parsed(compaction, 'gen_ai.output.messages')[0].parts[0].content).not.toBe('');
  });

  test('if not all messages fit, the newest are kept and the others are counted', () => {
    const long = Array.from({ length: 40 }, (_, at) => userText(`${at} ${'x'.repeat(1_000)}`));
    const shown = inputMessages(long, (text) => text);
    const texts = (JSON.parse(shown['gen_ai.input.messages']) as { parts: [{ content: string }] }[]).map(({ parts }) =>
      Number.parseInt(parts[0].content, 10),
    );
    expect(texts.at(-1)).toBe(39);
    expect(texts).toEqual(Array.from({ length: texts.length }, (_, at) => 40 - texts.length + at));
    expect(shown['coxswain.input.messages_left_out']).toBe(40 - texts.length);
    expect(texts.length).toBeLessThan(40);
  });
});

test.each(GOLDEN)('$name: each failure has a reason', ({ records }) => {
  for (const sink of [undefined, WITH_CONTENT])
    for (const { name, error } of folded(records, sink).spans)
      if (error) expect(error.message, `${name}: ${error.type}`).toMatch(/\S/);
});

test('a run that failed is logged as a warning, with its reason; another one is not', () => {
  const records = GOLDEN.find(({ name }) => name === 'session-failed.jsonl')?.records ?? [];
  const levels = (events: JournalRecord['events']) => {
    const lines: [level: string, fields: object][] = [];
    const line = (level: string) => (fields: object) => void lines.push([level, fields]);
    const logs = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
    const ports = { journal: { read: async function* () {} }, blobs: { get: async () => null }, clock, log: logs };
    const observer = new SessionObserver(ports, refOf(records), new LoadLimit(clock));
    observer.recorded({ ...(records[0] as JournalRecord), events }, NO_STEP, null);
    return lines;
  };
  const end = records.flatMap(({ events }) => events).filter(({ type }) => type === 'agent_end');
  expect(levels(end)).toEqual([
    ['warn', expect.objectContaining({ stop_reason: 'error', code: expect.any(String), error: expect.any(String) })],
  ]);
  const fine = GOLDEN.find(({ name }) => name === 'plain-answer.jsonl')?.records ?? [];
  const well = fine.flatMap(({ events }) => events).filter(({ type }) => type === 'agent_end');
  expect(levels(well)).toEqual([['info', expect.objectContaining({ stop_reason: 'end_turn' })]]);
});

describe('a command is linked to the span that it affects:', () => {
  const isCommand = ({ input }: JournalRecord, id: string) => input.type === 'command' && input.command_id === id;
  const cause = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), sampled: true };
  /** Names of the spans with a link to one command. */
  const linked = (name: string, commandId: string) => {
    const records = GOLDEN.find((one) => one.name === name)?.records ?? [];
    const fold = new SessionSpans(refOf(records));
    const spans = records.flatMap((record) => [...fold.take(record, isCommand(record, commandId) ? cause : null)]);
    return spans.filter(({ links }) => links.some(({ spanId }) => spanId === cause.spanId)).map((span) => span.name);
  };

  test.each([
    ['steered-one-at-a-time.jsonl', 'steer-1', 'turn 1'],
    ['approval-allowed-and-denied.jsonl', 'approve-2', 'approval haul'],
    ['cancel-call.jsonl', 'cancel_call-2', 'execute_tool'],
    ['cancel-while-streaming.jsonl', 'cancel-1', 'invoke_agent'],
    ['suspend-and-resume.jsonl', 'resume-1', 'suspended'],
    ['follow-up.jsonl', 'followup-1', 'turn 1'],
  ])('in %s that of %s is %s', (name, commandId, span) => {
    expect(linked(name, commandId)).toEqual([expect.stringContaining(span)]);
  });

  test.each([
    ['has a trace of another name', 'ticket-7', [cause]],
    ['is a child of the sender’s span', formatTraceparent(cause), []],
  ])('a start, if its run %s', (_, trace, links) => {
    const [first] = GOLDEN.find(({ name }) => name === 'plain-answer.jsonl')?.records ?? [];
    const events = first?.events.map((event) =>
      event.type === 'prompt_received' ? { ...event, settings: { ...event.settings, trace } } : event,
    );
    const fold = new SessionSpans(refOf([first as JournalRecord]));
    fold.take({ ...first, events } as JournalRecord, cause);
    expect(fold.open(0)[0]?.links).toEqual(links);
  });

  test('a rejected command has affected nothing', () => {
    const records = GOLDEN.find(({ name }) => name === 'rejected-commands.jsonl')?.records ?? [];
    const fold = new SessionSpans(refOf(records));
    const spans = records.flatMap((record) => [
      ...fold.take(record, record.events.some(({ type }) => type === 'command_rejected') ? cause : null),
    ]);
    expect(spans.length).toBeGreaterThan(0);
    expect(spans.flatMap(({ links }) => links)).toEqual([]);
  });

  test('no span has more than a bounded number of links, and the others are counted', () => {
    const records = GOLDEN.find(({ name }) => name === 'steered-one-at-a-time.jsonl')?.records ?? [];
    const at = records.findIndex((record) => isCommand(record, 'steer-1'));
    const fold = new SessionSpans(refOf(records));
    for (const record of records.slice(0, at)) fold.take(record);
    for (let nth = 0; nth < LINKS_MAX + 3; nth++) fold.take(records[at] as JournalRecord, cause);
    const turn = fold.open(0).find(({ name }) => name === 'turn 1');
    expect(turn?.links).toHaveLength(LINKS_MAX);
    expect(turn?.attributes['coxswain.links_left_out']).toBe(3);
  });
});

test('a new owner continues the open spans of the previous owner, and exports none twice', async () => {
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
      const meters = { add() {}, observe() {}, census: () => false } satisfies Telemetry['meters'];
      const stored = records.map((record, index): StoredRecord => ({ bytes: bytesOf(record), fence: index + 1 }));
      const journal = {
        read: async function* () {
          yield* stored;
        },
      };
      const ports = { telemetry: { meters, spans }, journal, blobs: { get: async () => null }, clock, log };
      return new SessionObserver(ports, refOf(records), new LoadLimit(clock));
    };
    const [first, second] = [observer(0), observer(1)];
    for (const record of records.slice(0, taken)) first.recorded(record, NO_STEP, null);
    for (const record of records.slice(taken)) second.recorded(record, NO_STEP, null);
    await expect.poll(() => got.flat().length).toBe(whole.length);
    expect(got.flat()).toEqual(whole);
  }
});

test('spans are given up if the records that wait for the earlier journal are too large together', () => {
  const lines: [fields: object, message: string][] = [];
  const spans: SpanSink = { capturesContent: false, keeps: () => true, masked: (text) => text, take: () => undefined };
  const meters = { add() {}, observe() {}, census: () => false } satisfies Telemetry['meters'];
  const journal = {
    // Never answers.
    read: async function* (): AsyncGenerator<StoredRecord> {
      await new Promise(() => {});
    },
  };
  const logs = { ...log, warn: (fields: object, message: string) => void lines.push([fields, message]) };
  const ports = { telemetry: { meters, spans }, journal, blobs: { get: async () => null }, clock, log: logs };
  const [first] = GOLDEN[0]?.records ?? [];
  const observer = new SessionObserver(ports, refOf([first as JournalRecord]), new LoadLimit(clock));
  const take = (n: number) =>
    observer.recorded({ ...first, n, prev_hash: 'x'.repeat(512 * 1024) } as JournalRecord, NO_STEP, null);
  for (let n = 2; n <= 17; n++) take(n);
  expect(lines).toEqual([]);
  for (let n = 18; n <= 20; n++) take(n);
  expect(lines).toEqual([
    [expect.objectContaining({ error: 'reading its journal takes too long' }), 'the spans of a session are omitted'],
  ]);
});

const bytesOf = (record: JournalRecord) => Buffer.from(JSON.stringify(record));
// Meters are tested elsewhere.
const NO_STEP = {
  before: null,
  after: { context: { total_usage: { input_tokens: 0, output_tokens: 0 }, total_cost: 0, pinned: null } },
} as unknown as Parameters<SessionObserver['recorded']>[1];

describe('content in spans', () => {
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
    // A tool that returns JSON as text.
    const quoted = JSON.parse(contentText({ body: JSON.stringify({ said }) }, (text) => text)) as { body: string };
    expect(JSON.parse(quoted.body)).toEqual({ said: shown });
  });

  test.each([
    'the token was refused; 300 tokens in',
    'git clone ssh://git@example.com/x',
    'mail ada@example.com, see https://example.com/@ada',
    'const password = readPassword()',
  ])('is unchanged if nothing looks like a secret: %j', (said) => {
    expect(JSON.parse(contentText({ said }, (text) => text))).toEqual({ said });
  });
});

describe('ids', () => {
  const ref = sessionRef('s1', 'red');
  const alone = { ref, trace: undefined, parent: null };
  const caller = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

  test('the first run is a child of the caller’s span', () => {
    const { context, parent } = traceOfRun({ ...alone, trace: caller }, 1);
    expect(context).toMatchObject({ traceId: 'a'.repeat(32), sampled: true });
    expect(parent).toEqual(parseTraceparent(caller));
    expect(traceOfRun(alone, 1).parent).toBeNull();
  });

  test('a child’s run is below its call, in the trace of the parent’s run', () => {
    for (const run of [1, 2]) {
      const link = { session: 's1', call_id: 'c', turn: 3, root: 's1' };
      const child = { ref: sessionRef('s2', 'red'), trace: traceForChild(alone, run), parent: link };
      const { context, parent } = traceOfRun(child, 1);
      expect(context.traceId).toBe(traceOfRun(alone, run).context.traceId);
      expect(parent?.spanId).toBe(callSpanId(ref, 3, 'c'));
    }
  });

  test('a fork of a child has no parent span', () => {
    const link = { session: 's1', call_id: 'c', turn: 3, root: 's1', detached: true as const };
    expect(traceOfRun({ ref: sessionRef('f', 'red'), trace: undefined, parent: link }, 1).parent).toBeNull();
  });

  test('a trace that is not sampled is not sampled below either', () => {
    const unkept = { ...alone, trace: caller.replace(/01$/, '00') };
    for (const run of [1, 2]) expect(traceOfRun(unkept, run).context.sampled).toBe(false);
  });

  test('sessions with the same id in two tenants share no ids', () => {
    const other = traceOfRun({ ...alone, ref: sessionRef('s1', 'blue') }, 1).context;
    const own = traceOfRun(alone, 1).context;
    expect(other.traceId).not.toBe(own.traceId);
    expect(other.spanId).not.toBe(own.spanId);
  });

  test('an invalid traceparent is a name', () => {
    const broken = [
      '',
      '00',
      `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
      `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      `${caller}-x`,
    ];
    expect(broken.map((text) => parseTraceparent(text))).toEqual(broken.map(() => null));
    // A later version may have more members.
    expect(parseTraceparent(`${caller.replace(/^00/, '01')}-more`)).toMatchObject({ traceId: 'a'.repeat(32) });
    expect(formatTraceparent(parseTraceparent(caller) as never)).toBe(caller);
  });
});

test('a fork has only the children that it starts itself, also those whose start it has copied', async () => {
  const bed = crewBed();
  const fail = { code: 'provider_error', message: 'mate is ill' };
  bed.parts = { lead: [delegate(['mate', 'go', { restart: 'on_failure' }]), say('alone, then')], mate: [{ fail }] };
  await bed.crewHost();
  await bed.begin('lead');
  await bed.time.advance(5_000);
  const records = await bed.records();
  const starts = records.filter(({ events }) => events.some(({ type }) => type === 'child_started')).map(({ n }) => n);
  expect(starts).toHaveLength(2);
  /** The places of its children among those that its journal names. */
  const childrenOfFork = async (n: number) => {
    const session = `fork-at-${n}`;
    await bed.send('start', { fork: { session: 's1', n } }, { session });
    await bed.time.advance(5_000);
    const named = await bed.childrenOf(session);
    return folded(await bed.records(session)).fold.children.map((id) => named.indexOf(id));
  };
  const found: number[][] = [];
  for (const n of [...starts, records.length]) found.push(await childrenOfFork(n));
  expect(found).toEqual([[0, 1], [1], []]);
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
      // Those before it succeeded.
      expect(ends).toEqual(turns.map((_, index) => (index === turns.length - 1 ? 'cancelled' : undefined)));
    }
  },
);
