import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AssistantMessage, type JournalRecord, type Message, userText } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { createModels } from '../src/mod.ts';
import { ask, textOfParts } from './request.ts';

const usage = { input_tokens: 3, output_tokens: 2 };

function record(n: number, message: AssistantMessage | null, input: object = {}): string {
  const events = [
    { type: 'turn_start', turn: n },
    ...(message
      ? [
          {
            type: 'message_complete',
            turn: n,
            message,
            finish_reason: 'stop',
            usage,
            body_streamed: true,
            duration_ms: 5,
            attempts: 1,
          },
        ]
      : []),
  ];
  return JSON.stringify({ v: 1, session_id: 's', n, input, events } satisfies Record<
    keyof Pick<JournalRecord, 'v' | 'session_id' | 'n' | 'input' | 'events'>,
    unknown
  >);
}

const withCall: AssistantMessage = {
  role: 'assistant',
  content: [
    { type: 'text', text: 'one' },
    { type: 'call', call_id: 'c9', tool: 'look', args: { a: 1 } },
  ],
};
const half: AssistantMessage = { role: 'assistant', content: [{ type: 'text', text: 'half' }], partial: true };
const error = { code: 'model_unavailable', message: 'down', retryable: true };
const JOURNAL = [
  record(1, null),
  record(2, withCall),
  record(3, half, { type: 'model_outcome', status: 'failed', error }),
  record(4, half, { type: 'model_outcome', status: 'cancelled' }),
].join('\n');

const models = createModels({ env: {}, readJournal: async () => `${JOURNAL}\n` });
const model = { name: 'replay/run.jsonl' };

test('answers come in the order of the journal, wherever the host was restarted', async () => {
  const transcript: Message[] = [userText('go')];
  const first = await ask(models, model, transcript);
  expect(first.result).toMatchObject({ status: 'complete', message: withCall, usage, finishReason: 'stop' });
  expect(first.parts).toEqual([
    { type: 'text', text: 'one' },
    { type: 'call', callId: 'c9', tool: 'look', argsText: '{"a":1}' },
  ]);
  expect((await ask(models, model, transcript)).result).toEqual(first.result);

  transcript.push(first.result.message, userText('on'));
  const second = await ask(models, model, transcript);
  expect(second.result).toMatchObject({ status: 'failed', error, message: half });

  transcript.push(second.result.message, userText('on'));
  const third = await ask(models, model, transcript);
  expect(third.result.status).toBe('complete');
  expect(textOfParts(third.parts)).toBe('half');

  transcript.push(third.result.message, userText('on'));
  expect((await ask(models, model, transcript)).result.error).toEqual({
    code: 'replay_exhausted',
    message: 'journal run.jsonl has 3 answers, and this session asks for number 4',
    retryable: false,
  });
});

test('an answer without content is given once, not for ever', async () => {
  const empty = [record(1, { role: 'assistant', content: [] }), record(2, withCall)].join('\n');
  const replayed = createModels({ env: {}, readJournal: async () => empty });
  const { result } = await ask(replayed, model, [userText('go')]);
  expect(result).toMatchObject({ status: 'complete', message: { content: [{ type: 'text', text: '' }] } });
  const next = await ask(replayed, model, [userText('go'), result.message, userText('on')]);
  expect(next.result.message).toEqual(withCall);
});

test('a journal is read once, from a file or by the reader', async () => {
  let reads = 0;
  const counted = createModels({
    env: {},
    readJournal: async () => {
      reads++;
      return JOURNAL;
    },
  });
  for (let i = 0; i < 3; i++) expect(await counted.check(model)).toBeNull();
  expect(reads).toBe(1);

  const folder = mkdtempSync(join(tmpdir(), 'journals-'));
  try {
    writeFileSync(join(folder, 'run.jsonl'), JOURNAL);
    const files = createModels({ env: {}, baseFolder: folder });
    expect(await files.check(model)).toBeNull();
    expect((await ask(files, model, [userText('go')])).result.message).toEqual(withCall);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('an abort gives nothing', async () => {
  const { result, parts } = await ask(models, model, [userText('go')], { signal: AbortSignal.abort() });
  expect(result.status).toBe('cancelled');
  expect(parts).toEqual([]);
});

describe('large fields of an exported journal,', () => {
  const long = 'and so on '.repeat(20);
  const sha256 = 'a'.repeat(64);
  const other = 'b'.repeat(64);
  const said: AssistantMessage = { role: 'assistant', content: [{ type: 'text', text: long }] };
  const apart = (sha: string) => ({ sha256: sha, bytes: 200 });
  const stored = JSON.parse(record(1, said));
  stored.events[1].message.content[0].text = apart(sha256);
  stored.events.push({ type: 'call_ended', result: apart(other) });
  stored.blobs = ['/events/1/message/content/0/text', '/events/2/result'];
  const lines = (...more: object[]) =>
    createModels({
      env: {},
      readJournal: async () => [...more, stored].map((line) => JSON.stringify(line)).join('\n'),
    });

  test('stand in lines of their own, and come back as they were', async () => {
    const asked = await ask(lines({ blob: sha256, text: long }, { blob: other, base64: 'AAAA' }), model, [
      userText('go'),
    ]);
    expect(asked.result).toMatchObject({ status: 'complete', message: said });
  });

  test('are not missed where no answer needs them', async () => {
    expect((await ask(lines({ blob: sha256, text: long }), model, [userText('go')])).result.message).toEqual(said);
  });

  test('are missed where one does', async () => {
    expect((await ask(lines(), model, [userText('go')])).result.error).toMatchObject({
      code: 'record_unreadable',
      message: expect.stringMatching(/line 1: .*export it without --records-only/),
    });
  });
});

describe('a journal that cannot be used', () => {
  test.each([
    ['{"v":1', 'line 1'],
    [`${record(1, null)}\n{"no":"events"}`, 'line 2'],
    [`\n${record(1, { role: 'assistant' } as unknown as AssistantMessage)}`, 'line 2: message_complete'],
  ])('%s', async (journal, names) => {
    const broken = createModels({ env: {}, readJournal: async () => journal });
    const failure = await broken.check(model);
    expect(failure).toMatchObject({ code: 'record_unreadable', message: expect.stringContaining(names) });
    expect((await ask(broken, model, [userText('go')])).result.error).toEqual(failure);
  });

  test('a file that is not there is named', async () => {
    expect(await createModels({ env: {}, baseFolder: '/nowhere' }).check(model)).toMatchObject({
      code: 'provision_failed',
      message: expect.stringContaining('run.jsonl'),
    });
  });
});

test('compactions are answered with what the journal says of them, failures too', async () => {
  const settled = (n: number, type: string, input: object) =>
    JSON.stringify({ n, input: { type: 'compact_outcome', usage, ...input }, events: [{ type }] });
  const journal = [
    JOURNAL,
    settled(5, 'compaction_done', { status: 'complete', text: 'in short' }),
    settled(6, 'compaction_skipped', { status: 'failed', text: '', error }),
  ].join('\n');
  const replaying = createModels({ env: {}, readJournal: async () => journal });
  const asked = (compaction: number) => ask(replaying, model, [userText('what was')], { compaction });
  expect((await asked(1)).result).toMatchObject({
    status: 'complete',
    message: { content: [{ type: 'text', text: 'in short' }] },
    usage,
  });
  expect((await asked(2)).result).toMatchObject({ status: 'failed', error });
  expect((await asked(3)).result.error?.code).toBe('replay_exhausted');
});

test('answers go on after a compaction has taken the first of them out of the transcript', async () => {
  const answered = { count: 1, last: withCall };
  const { result } = await ask(models, model, [userText('in short')], { answered });
  expect(result.message.content).toEqual(half.content);
});
