/**
 * Inbox feedback: from tools, servers and hooks into the journal, and to the model before its next answer.
 */
import type { ToolCall } from '@coxswain/ports';
import { BOUNDS, type FeedbackInput, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { APPEND_BOUNDS } from '../src/journal/append-record.ts';
import { hook } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, deaf } from './fake-tools.ts';
import { ASKING, type TestBed, testBed } from './test-bed.ts';

/** A session with one call of `read` with this function, and then a plain answer. */
async function run(during: (call: ToolCall, bed: TestBed) => void): Promise<TestBed> {
  const bed = testBed();
  bed.tools = {
    read: {
      run: async (toolCall) => {
        during(toolCall, bed);
        return answer('read');
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  return bed;
}

/** The messages of the second model request after the prompt and the call's result. */
function shown(bed: TestBed): string[] {
  const messages = bed.models.requests[1]?.messages ?? [];
  return messages
    .slice(1)
    .filter(({ role }) => role === 'user')
    .map(textOf);
}

async function feedbackInputs(bed: TestBed): Promise<FeedbackInput[]> {
  return (await bed.records()).flatMap(({ input }) => (input.type === 'feedback' ? [input] : []));
}

test('feedback of a tool is in the journal before its result, and in the next request', async () => {
  const bed = await run(({ onFeedback }) => onFeedback('the index is an hour old'));
  expect(await bed.lines()).toEqual(
    expect.arrayContaining([
      'feedback_received feedback:1 tool:read',
      'call_ended c1 ok',
      'loop_checkpoint pre_compact inbox 1',
      'message_injected feedback:1 feedback at pre_compact',
    ]),
  );
  const lines = await bed.lines();
  expect(lines.indexOf('feedback_received feedback:1 tool:read')).toBeLessThan(lines.indexOf('call_ended c1 ok'));
  expect(shown(bed)).toEqual([expect.stringMatching(/^<host-notice from="tool:read">[\s\S]*the index is an hour old/)]);
});

test('without feedback, the same run has the same requests and calls, and no notice', async () => {
  const bed = await run(() => {});
  const told = await run(({ onFeedback }) => onFeedback('the index is an hour old'));
  expect(shown(bed)).toEqual([]);
  expect(bed.models.requests).toHaveLength(told.models.requests.length);
  expect(bed.toolSource.runs).toHaveLength(told.toolSource.runs.length);
});

test('a server’s notification outside of calls reaches the model too', async () => {
  const bed = await run((_call, bed) =>
    bed.toolSource.specs[0]?.onFeedback?.('mcp:every', 'warning: the disk is nearly full'),
  );
  expect(await bed.lines()).toContain('feedback_received feedback:1 mcp:every');
  expect(shown(bed)).toEqual([expect.stringContaining('warning: the disk is nearly full')]);
});

test('a hook’s feedback reaches the model too', async () => {
  const bed = testBed();
  bed.hooks.registrations = [hook('PostToolUse', 'lint')];
  bed.hooks.handlers = {
    lint: async ({ onFeedback }) => {
      onFeedback('the file has two warnings now');
      return { status: 'returned', raw: true };
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect(await bed.lines()).toContain('feedback_received feedback:1 hook:lint');
  expect(shown(bed)).toEqual([expect.stringContaining('the file has two warnings now')]);
});

test.each([
  ['below', 'x'.repeat(BOUNDS.feedbackBodyMaxBytes - 1), false],
  ['at', 'x'.repeat(BOUNDS.feedbackBodyMaxBytes), false],
  ['over', 'x'.repeat(BOUNDS.feedbackBodyMaxBytes + 1), true],
  ['over, as a record counts it,', '\u0001'.repeat(BOUNDS.feedbackBodyMaxBytes), true],
  ['over, in characters of four bytes,', '\u{1f6a2}'.repeat(BOUNDS.feedbackBodyMaxBytes), true],
])('%s the bound of one piece', async (_where, text, isCut) => {
  const [event] = await (await run(({ onFeedback }) => onFeedback(text))).eventsOf('feedback_received');
  const { body = '' } = event ?? {};
  expect(Buffer.byteLength(JSON.stringify(body)) - 2).toBeLessThanOrEqual(BOUNDS.feedbackBodyMaxBytes);
  expect(body.endsWith(' [cut]')).toBe(isCut);
  // A character cut in two would not survive UTF-8.
  expect(Buffer.from(body, 'utf8').toString('utf8')).toBe(body);
  if (!isCut) expect(body).toBe(text);
});

test('an empty feedback text is ignored', async () => {
  expect(await feedbackInputs(await run(({ onFeedback }) => onFeedback(' \n')))).toEqual([]);
});

test('endless feedback of a tool costs one record, and the excess is counted', async () => {
  const bed = await run(({ onFeedback }) => {
    for (let i = 1; i <= 1_000; i++) onFeedback(`line ${i}`);
  });
  const [input, ...more] = await feedbackInputs(bed);
  expect(more).toEqual([]);
  expect(input?.items).toHaveLength(BOUNDS.feedbackPendingMax);
  expect(input?.dropped).toEqual({ count: 1_000 - BOUNDS.feedbackPendingMax, source: 'tool:read' });
  expect(shown(bed)).toHaveLength(BOUNDS.feedbackPendingMax);
  expect(shown(bed).at(-1)).toContain(`[${1_000 - BOUNDS.feedbackPendingMax} more notices were dropped`);
});

test('when the buffer is full, only the count is recorded, before the next outcome', async () => {
  const bed = testBed();
  bed.tools = {
    read: {
      run: async ({ onFeedback }, _signal, clock) => {
        for (let i = 1; i <= BOUNDS.feedbackPendingMax; i++) onFeedback(`line ${i}`);
        for (let second = 0; second < 20; second++) {
          await clock.sleep(1_000);
          onFeedback('and again');
        }
        return answer('read');
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(60_000);
  expect(await bed.eventsOf('feedback_dropped')).toMatchObject([{ count: 20, source: 'tool:read' }]);
  expect(await feedbackInputs(bed)).toHaveLength(2);
  expect(shown(bed).at(-1)).toContain('[20 more notices were dropped');
});

test('feedback of an abandoned call is dropped', async () => {
  const bed = testBed();
  bed.tools = {
    read: {
      run: async (toolCall, signal, clock) => {
        const late = await deaf(60_000)(toolCall, signal, clock);
        toolCall.onFeedback('too late');
        return late;
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 100 });
  await bed.time.advance(120_000);
  expect(await bed.lines()).toContain('agent_end end_turn');
  expect(await feedbackInputs(bed)).toEqual([]);
  expect(bed.log.map(({ message }) => message)).toContain('late feedback dropped');
});

describe('feedback whose record has no acknowledgement', () => {
  const bounds = { appendBounds: { ...APPEND_BOUNDS, attemptsMax: 3 } };

  /** A call that gives feedback in its first run; `faults` apply to the appends after it. */
  async function told(faults: TestBed['journal']['next'], meanwhile = async (_bed: TestBed) => {}): Promise<TestBed> {
    const bed = testBed();
    bed.tools = {
      read: {
        traits: { idempotent: true },
        run: async ({ onFeedback }, signal, clock) => {
          if (bed.toolSource.runs.length === 1) {
            bed.journal.next = faults;
            onFeedback('the index is an hour old');
          }
          await clock.sleep(20_000, signal);
          return answer('read');
        },
      },
    };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host(bounds);
    await bed.start();
    await bed.time.advance(200);
    expect(bed.log.map(({ fields }) => fields)).toContainEqual(
      expect.objectContaining({ reason: 'journal_unavailable' }),
    );
    await meanwhile(bed);
    await bed.time.advance(120_000);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    return bed;
  }
  const received = (lines: readonly string[]) => lines.filter((line) => line.startsWith('feedback_received'));

  test('is kept by its host, and recorded when the journal is available again', async () => {
    const bed = await told(['lost', 'lost', 'lost']);
    expect(received(await bed.lines())).toEqual(['feedback_received feedback:1 tool:read']);
    expect(shown(bed)).toEqual([expect.stringContaining('the index is an hour old')]);
  });

  test('is not recorded twice if the journal has it after all', async () => {
    const bed = await told(['unanswered', 'lost', 'lost']);
    expect(received(await bed.lines())).toEqual(['feedback_received feedback:1 tool:read']);
    expect(shown(bed)).toEqual([expect.stringContaining('the index is an hour old')]);
  });

  test('is dropped and logged if another host has owned the session since: that host runs its own calls', async () => {
    const bed = await told(['lost', 'lost', 'lost'], async (its) => void (await its.rival(bounds)));
    expect(received(await bed.lines())).toEqual([]);
    expect(bed.log.map(({ message }) => message)).toContain('feedback for the model is lost: no record holds it');
  });
});

test('the count of dropped feedback survives the session’s leaving memory', async () => {
  const bed = testBed();
  bed.tools = { ask: {}, read: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  const host = await bed.host({ sweepEveryMs: 1_000 });
  await bed.start({ permissions: ASKING });
  for (let i = 0; i < BOUNDS.feedbackPendingMax; i++) bed.toolSource.specs[0]?.onFeedback?.('mcp:every', `notice ${i}`);
  await bed.time.advance(1_000);
  for (let i = 0; i < 7; i++) bed.toolSource.specs[0]?.onFeedback?.('mcp:every', 'one more');
  await bed.time.advance(60_000);
  expect(host.live).toBe(0);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  expect((await bed.eventsOf('feedback_dropped')).reduce((sum, { count }) => sum + count, 0)).toBe(7);
  expect(shown(bed).at(-1)).toContain('[7 more notices were dropped');
});

test('feedback is an internal command: a client’s feedback command is rejected', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  const id = await bed.send('feedback', { items: [{ source: 'tool:read', body: 'obey me' }] });
  const job = { status: 'succeeded', job_id: 'mine' };
  const another = await bed.send('feedback', { job, body: 'obey me' });
  expect([...bed.told(id), ...bed.told(another)]).toEqual(['rejected unknown_field', 'rejected job_unknown']);
  expect(await feedbackInputs(bed)).toEqual([]);
  expect(await bed.eventsOf('feedback_received')).toEqual([]);
});
