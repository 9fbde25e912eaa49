/** Bounds of what a run does: its records, its batches, its hooks, its waits. */
import { createMemoryBus } from '@coxswain/adapter-memory';
import { BOUNDS, type JournalRecord, type Message, sessionRef, userText } from '@coxswain/protocol';
import type { Effect } from '@coxswain/turn';
import { expect } from 'vitest';
import { provision } from '../../../turn/test/moves.ts';
import { askCompaction } from '../../src/effects/ask-compaction.ts';
import { consultHooks } from '../../src/effects/consult-hooks.ts';
import { sealRecord, Transcript } from '../../src/mod.ts';
import { FeedbackBuffer } from '../../src/runner/feedback-buffer.ts';
import { FakeHooks, hook, returns } from '../fake-hooks.ts';
import { ask, call, FakeModels, say } from '../fake-model.ts';
import { answer } from '../fake-tools.ts';
import { refOf, testBed } from '../test-bed.ts';
import { VirtualTime } from '../virtual-time.ts';
import { type BoundRows, filling, from, list, most } from './row.ts';

/** One hook, asked about a payload, or about a view, and what becomes of its answer. */
async function consulted(
  point: 'PreToolUse' | 'transform_context',
  payload: { readonly [key: string]: string },
  raw: unknown,
  messages?: readonly Message[],
): Promise<string> {
  const hooks = new FakeHooks();
  hooks.handlers = { h: returns(raw) };
  const consult = {
    ref: refOf(),
    effectId: '1-0',
    point,
    registrations: [hook(point, 'h')],
    failOpen: [],
    payload,
    tool: undefined,
    needsApproval: async () => false,
    isRunAborting: () => false,
    transcript: () => [],
    onFeedback: () => undefined,
    ...(messages ? { messages } : {}),
  };
  const clock = new VirtualTime().clock();
  const { answers } = await consultHooks(hooks, clock, consult, new AbortController().signal);
  return answers[0]?.failure?.code ?? 'ok';
}

/** Starts a model call `restarts` times, waits `waitedMs`, and returns whether the model is asked again. */
async function begunAgain(restarts: number, waitedMs: number): Promise<string> {
  const bed = testBed();
  bed.models.answers = [say('never', { delayMs: 1e9 })];
  let host = await bed.host();
  await bed.start();
  for (let i = 1; i <= restarts; i++) {
    if (i > 1) await bed.time.advance(BOUNDS.modelRestartBackoffMaxMs);
    host.abandon();
    host = await bed.host();
  }
  const before = bed.models.requests.length;
  expect(before).toBe(restarts);
  await bed.time.advance(waitedMs);
  return bed.models.requests.length > before ? 'asked' : 'waits';
}

/** The rows for bounds of runs: records, batches, hooks and waits. */
export const OF_RUNS: BoundRows = {
  callsPerBatchMax: most('1 too_many_calls', async (size) => {
    const bed = testBed();
    bed.models.answers = [ask(...list(size, (i) => call(`c${i}`, 'read'))), say('done')];
    await bed.host();
    await bed.start();
    const ends = await bed.eventsOf('call_ended');
    expect(ends).toHaveLength(size);
    const refused = ends.filter(({ is_error }) => is_error);
    return refused.length === 0 ? 'ok' : `${refused.length} ${refused[0]?.result.detail?.code}`;
  }),
  batchArgsMaxBytes: most('1 arguments_too_large {}', async (size) => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'read', {}), call('c2', 'read', filling('text', size - 2))), say('done')];
    await bed.host();
    await bed.start();
    const refused = (await bed.eventsOf('call_ended')).filter(({ is_error }) => is_error);
    const asked = (await bed.eventsOf('message_complete'))[0]?.message.content.find(
      (part) => part.type === 'call' && part.call_id === 'c2',
    );
    const args = asked?.type === 'call' ? JSON.stringify(asked.args) : '';
    return refused.length === 0 ? 'ok' : `${refused.length} ${refused[0]?.result.detail?.code} ${args}`;
  }),
  maxTurnsDefault: most('max_turns', async (size) => {
    const bed = testBed();
    bed.models.answers = [...list(size - 1, (i) => ask(call(`c${i}`, 'read', { i }))), say('done')];
    await bed.host();
    await bed.start();
    const [end] = await bed.eventsOf('agent_end');
    return end?.stop_reason === 'end_turn' ? 'ok' : String(end?.stop_reason);
  }),
  toolsMax: most('1 left out', async (size) => {
    const bed = testBed();
    bed.tools = Object.fromEntries(list(size, (i) => [`t${i}`, {}]));
    await bed.host();
    await bed.start();
    const left = size - ((await bed.eventsOf('tools_changed'))[0]?.tools.length ?? 0);
    return left === 0 ? 'ok' : `${left} left out`;
  }),
  fieldInlineMaxBytes: most('stored apart', (size) => {
    const record = { input: { body: 'x'.repeat(size) }, events: [] } as unknown as JournalRecord;
    return sealRecord(record).blobs.length === 0 ? 'ok' : 'stored apart';
  }),
  recordMaxBytes: most('record_too_large', async (size) => {
    const bus = createMemoryBus();
    try {
      await bus.journal.append(sessionRef('s1'), Buffer.alloc(size, 'x'), 0);
      return 'ok';
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      bus.close();
    }
  }),
  feedbackBodyMaxBytes: most('cut', (size) => {
    const buffer = new FeedbackBuffer();
    buffer.add('tool:read', 'x'.repeat(size));
    return buffer.offer(1, 'host').items[0]?.body.endsWith(' [cut]') ? 'cut' : 'ok';
  }),
  hookPayloadMaxBytes: most('hook_unavailable, return_unreadable', async (size) => {
    const sent = await consulted('PreToolUse', filling('text', size), undefined);
    const frame = JSON.stringify({ args: { text: '' } }).length;
    const returned = await consulted('PreToolUse', {}, { args: { text: 'x'.repeat(size - frame) } });
    return sent === 'ok' && returned === 'ok' ? 'ok' : `${sent}, ${returned}`;
  }),
  transformedViewMaxBytes: most('return_unreadable', (size) => {
    const frame = JSON.stringify({ messages: [userText('')] }).length;
    const view = [userText('x'.repeat(size - frame))];
    return consulted('transform_context', {}, { messages: view }, view);
  }),
  transformedMessagesMaxBytes: most('verdict_invalid', (size) => {
    const frame = JSON.stringify(userText('')).length;
    return consulted('transform_context', {}, { messages: [userText('x'.repeat(size - frame))] }, [userText('hello')]);
  }),
  summaryMaxChars: most('cut', async (size) => {
    const clock = new VirtualTime().clock();
    const models = new FakeModels(clock);
    models.summaries = [say('x'.repeat(size))];
    const transcript = new Transcript();
    transcript.push({ type: 'persona_changed', fingerprint: 'f', provision: provision() });
    const effect = { kind: 'compact', strategy: 'summary', turn: 1, keptTurns: 0, room: 1_000, step: 1 } as Extract<
      Effect,
      { kind: 'compact' }
    >;
    const { signal } = new AbortController();
    const { text } = await askCompaction(models, clock, 'k', effect, transcript, refOf(), signal);
    return text.length === size ? 'ok' : 'cut';
  }),
  abortGraceMs: from('cancelled', 'timeout', async (ms) => {
    const bed = testBed();
    bed.tools = {
      haul: {
        run: async (_call, signal, clock) => {
          await clock.sleep(1e9, signal);
          await clock.sleep(ms);
          return { ...answer('stopped', 'error'), status: 'cancelled' };
        },
      },
    };
    bed.models.answers = [ask(call('c1', 'haul')), say('done')];
    await bed.host();
    await bed.start();
    await bed.send('cancel_call', { call_id: 'c1' });
    await bed.time.advance(2 * BOUNDS.abortGraceMs);
    return String((await bed.eventsOf('control_outcome'))[0]?.status);
  }),
  predicateTimeoutMs: from('holds', 'predicate_failed', async (ms) => {
    const bed = testBed();
    const clock = bed.time.clock();
    await bed.host({}, { stopPredicates: { enough: () => clock.sleep(ms).then(() => true) } });
    await bed.start({ persona: { name: 'mate', stop_when: [{ predicate: 'enough' }] } });
    await bed.time.advance(2 * BOUNDS.predicateTimeoutMs);
    const said = (await bed.eventsOf('stop_predicates_answered'))[0]?.answers[0];
    return said?.failure?.code ?? (said?.holds ? 'holds' : 'does not hold');
  }),
  modelRestartBackoffMs: from('waits', 'asked', (ms) => begunAgain(3, ms)),
  modelRestartBackoffMaxMs: from('waits', 'asked', (ms) => begunAgain(BOUNDS.modelRestartsMax, ms)),
};
