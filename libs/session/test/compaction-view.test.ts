/**
 * Random sessions: prompts are complete, steers are kept, and the machine's account of the view is right.
 */
import { type EventOf, pairingProblem, type SessionEvent } from '@coxswain/protocol';
import { messageCount, SessionActor } from '@coxswain/turn';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { journalLine } from '../../turn/test/journal-line.ts';
import { hook, type Surroundings, started } from '../../turn/test/moves.ts';
import { possibilities } from '../../turn/test/world.ts';
import { Transcript } from '../src/view/transcript.ts';

const surroundings: fc.Arbitrary<Surroundings> = fc.record({
  compaction: fc.record({
    strategy: fc.constantFrom('summary' as const, 'notes' as const, 'clear_tool_results' as const),
    keep_turns: fc.integer({ min: 0, max: 3 }),
    window: fc.constantFrom(100, 400),
  }),
  hooks: fc.subarray([hook('pre_compact'), hook('post_compact'), hook('PreToolUse')]),
  maxTurns: fc.constant(20),
  steering: fc.constantFrom('all' as const, 'one_at_a_time' as const),
});
const choices = fc.array(
  fc.noShrink(fc.record({ lane: fc.nat(9), pick: fc.noBias(fc.nat(999)), long: fc.boolean() })),
  {
    maxLength: 80,
    size: 'max',
  },
);

test('every prompt pairs calls with results, has each steer of its run once, and has the accounted length', () => {
  let compactions = 0;
  fc.assert(
    fc.property(surroundings, choices, (around, chosen) => {
      const actor = new SessionActor('s1');
      const transcript = new Transcript();
      const events: SessionEvent[] = [];
      let n = 0;
      let ids = 0;
      const step = (input: Parameters<SessionActor['step']>[0]) => {
        const taken = actor.step(input, n + 1, 0);
        if (taken.decision.kind === 'ignored') return;
        n++;
        for (const event of taken.events) {
          events.push(event);
          transcript.push(event);
        }
        check(actor, transcript, events);
      };
      step(started());
      for (const { lane, pick, long } of chosen) {
        const possible = possibilities(actor.state, around, () => `k${ids++}`);
        const kind = lane === 0 ? 'trouble' : lane < 4 ? 'word' : 'work';
        const inLane = possible.filter((possibility) => possibility.lane === kind);
        const from = inLane.length > 0 ? inLane : possible;
        const input = from[pick % from.length]?.input;
        if (!input) continue;
        // Results long enough for a stub.
        if (long && input.type === 'call_outcome')
          step({ ...input, result: { ...input.result, content: [{ type: 'text', text: 'x'.repeat(500) }] } });
        else step(input);
      }
      compactions += events.filter(({ type }) => type === 'compaction_done').length;
    }),
    { numRuns: 100, seed: 1 },
  );
  // Otherwise the test would check nothing.
  expect(compactions).toBeGreaterThan(10);
}, 120_000);

function check(actor: SessionActor, transcript: Transcript, events: readonly SessionEvent[]): void {
  const { context } = actor.state;
  // Only requests are prompts; in between, a batch may be open.
  if (context.model === null) return;
  const printed = events.map(journalLine).join('\n');
  const view = transcript.view();
  expect(pairingProblem(view), printed).toBeNull();
  expect(view.length, printed).toBe(messageCount(context.view));
  const begun = events.findLastIndex(({ type }) => type === 'prompt_received');
  const steers = events
    .slice(begun)
    .filter((event): event is EventOf<'message_injected'> => event.type === 'message_injected')
    .filter(({ origin, audit_only }) => origin === 'steer' && !audit_only);
  for (const { message, command_id } of steers)
    expect(
      view.filter((shown) => shown === message),
      `${command_id}\n${printed}`,
    ).toHaveLength(1);
}
