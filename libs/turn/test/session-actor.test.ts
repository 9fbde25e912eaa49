/**
 * The live actor, the fold, and states as JSON are equivalent.
 */
import { canonicalJson, type SessionEvent } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import {
  applyEvent,
  DerivationUnboundedError,
  EventNotAcceptedError,
  effectsOf,
  emptyState,
  isEnded,
  leafOf,
  openEffectIds,
  restoreState,
  SessionActor,
  topStateOf,
} from '../src/mod.ts';
import { given } from './given.ts';
import { leafNames } from './machine-edges.ts';
import { answered, asked, call, followedUp, hook, returned, running, started, toolsClosed } from './moves.ts';

describe('an event without a transition in the current state', () => {
  test.each([
    ['turn_start', { type: 'turn_start', turn: 1 }],
    [
      'agent_end',
      {
        type: 'agent_end',
        run: 1,
        stop_reason: 'end_turn',
        turns: 0,
        usage: { input_tokens: 0, output_tokens: 0 },
        pending: 0,
      },
    ],
    ['an event that nobody knows', { type: 'no_such_event' }],
  ])('is rejected by the actor and by the fold: %s', (_name, event) => {
    const unfit = event as SessionEvent;
    expect(() => new SessionActor('s1').send(unfit, 1, 0)).toThrow(EventNotAcceptedError);
    expect(() => applyEvent(emptyState('s1'), unfit, 1, 0)).toThrow(/stopped does not accept/);
  });

  // XState throws an error of its own actor from a timer, where it cannot be caught, and Vitest fails the run.
  test('with members that do not fit its type is rejected, and nothing is thrown outside of the call', async () => {
    const unfit = { type: 'prompt_received', run: 1 } as unknown as SessionEvent;
    expect(() => new SessionActor('s1').send(unfit, 1, 0)).toThrow(/stopped cannot apply prompt_received/);
    await new Promise((resolve) => setTimeout(resolve));
  });

  test('is rejected without a change', () => {
    const actor = new SessionActor('s1');
    const before = actor.state;
    expect(() => actor.send({ type: 'turn_start', turn: 1 }, 1, 0)).toThrow(EventNotAcceptedError);
    expect(actor.state).toBe(before);
  });
});

describe('a dormant actor', () => {
  const { session } = given(running()).when(asked(call('c1', 'read')));

  test('has the same state, and continues like one that stayed active', () => {
    const [rested, awake] = [new SessionActor('s1'), new SessionActor('s1')];
    for (const { events, n } of session.steps) {
      for (const event of events) for (const actor of [rested, awake]) actor.send(event, n, 0);
      const before = rested.state;
      rested.releaseMemory();
      expect(rested.state).toBe(before);
      expect(canonicalJson(rested.store())).toBe(canonicalJson(awake.store()));
    }
  });

  test('has released its XState actor, and creates another only for the next event', () => {
    const actor = new SessionActor('s1');
    const first = actor.actor;
    actor.releaseMemory();
    actor.releaseMemory();
    expect(leafOf(actor.state)).toBe('stopped');
    expect(() => actor.send({ type: 'turn_start', turn: 1 }, 1, 0)).toThrow(EventNotAcceptedError);
    expect(actor.actor).not.toBe(first);
  });
});

describe('a state from JSON', () => {
  test.each(leafNames())('%s is restored', (leaf) => {
    const [top, child] = leaf.split('.') as [string, string?];
    const { context } = emptyState('s1');
    const restored = restoreState({ value: child === undefined ? top : { [top]: child }, context });
    expect(leafOf(restored)).toBe(leaf);
    expect(topStateOf(restored)).toBe(top);
  });

  test.each([
    ['a state that the machine does not have', 'paused'],
    ['a child that its parent does not have', { provisioning: 'dreaming' }],
    ['a parent without its child', 'provisioning'],
    ['a child of a state that has none', { stopped: 'really' }],
    ['a name that every object has', 'constructor'],
    ['nothing', {}],
  ])('is rejected if it is %s', (_name, value) => {
    const stored = { value: value as string, context: emptyState('s1').context };
    expect(() => restoreState(stored)).toThrow();
    expect(() => new SessionActor('s1', stored)).toThrow();
  });

  test('continues exactly where it was stored', () => {
    const { session } = given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read'))).when();
    const stored = JSON.parse(canonicalJson({ value: session.state.value, context: session.state.context }));
    const actor = new SessionActor('s1', stored);
    expect(openEffectIds(actor.state)).toEqual(openEffectIds(session.state));
    const { events } = actor.step({ type: 'command', verb: 'cancel', command_id: 'c', body: {} }, 9, 0);
    expect(events.map(({ type }) => type)).toEqual(['control_outcome', 'call_ended']);
  });
});

describe('a session without a record', () => {
  test('is stopped, without a run and without effects', () => {
    const state = emptyState('s1');
    expect(leafOf(state)).toBe('stopped');
    expect(isEnded(state)).toBe(true);
    expect(state.context.run).toBe(0);
    expect(effectsOf(state)).toEqual([]);
    expect(canonicalJson(new SessionActor('s1').store())).toBe(
      canonicalJson({ value: state.value, context: state.context }),
    );
  });
});

describe('effects', () => {
  test('have ids made of the record that requested them and their index', () => {
    const { session } = given(running()).when(asked(call('a', 'read'), call('b', 'read')));
    expect(openEffectIds(session.state)).toEqual(['3-0', '3-1']);
    expect(effectsOf(session.state)).toEqual([
      { kind: 'call_tool', id: '3-0', epoch: 1, abort: null, callId: 'a', tool: 'read', args: {} },
      { kind: 'call_tool', id: '3-1', epoch: 1, abort: null, callId: 'b', tool: 'read', args: {} },
    ]);
  });

  test('of one consult share one id, for any number of registrations', () => {
    const { session } = given(started()).when(
      ...[running({ hooks: [hook('PreToolUse', 'one'), hook('PreToolUse', 'two')] })].flat().slice(1),
      asked(call('a', 'read')),
    );
    expect(effectsOf(session.state)).toMatchObject([{ kind: 'consult', id: '3-0', hooks: ['one', 'two'] }]);
  });

  test('contain the turn of a model call, and the number of its restarts', () => {
    const { session } = given(running(), asked(call('a', 'read')), returned('a')).when();
    expect(effectsOf(session.state)).toEqual([
      { kind: 'call_model', id: '4-0', epoch: 1, restarts: 0, turn: 2, abort: null },
    ]);
  });
});

describe('the state of a session', () => {
  test('does not grow with its turns', () => {
    const { session } = given(running({ maxTurns: 1_000 })).when();
    const sizes: number[] = [];
    for (let i = 0; i < 120; i++) {
      session.make(asked(call('a', 'read'), call('b', 'read')), returned('a'), returned('b'));
      if (i >= 99) sizes.push(canonicalJson(session.state.context).length);
    }
    // Record and token counts get longer digits; nothing else changes.
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(16);
  });

  test('does not grow with its runs and follow-ups', () => {
    const { session } = given(running(), answered(), toolsClosed).when();
    const size = () => canonicalJson({ ...session.state.context, command_ids: [] }).length;
    const before = size();
    for (let i = 0; i < 30; i++) {
      session.make(
        { type: 'command', verb: 'prompt', command_id: `p${i}`, body: { body: 'hello' } },
        ...[running()].flat().slice(1),
        followedUp(`f${i}`),
        answered(),
        answered(),
        toolsClosed,
      );
    }
    expect(size() - before).toBeLessThan(32);
  });
});

test('more events than can follow from one input are an error, not an endless loop', () => {
  const { context } = emptyState('s1');
  // More queued messages than the bounds allow.
  const followups = Array.from({ length: 5_000 }, (_, i) => ({ command_id: `f${i}`, body: 'x', at: '' }));
  const overfull = new SessionActor('s1', {
    value: { steering_check: 'follow_up' },
    context: {
      ...context,
      run: 1,
      run_started: true,
      followups,
      pinned: {
        persona: 'p',
        persona_fingerprint: '',
        prompt_fingerprint: '',
        tools_fingerprint: '',
        hooks_fingerprint: '',
        model: 'm/m',
        permissions: { rules: [], default: 'ask' },
        max_turns: 1,
        parallel_calls: 1,
        drain: { steering: 'all', followups: 'all' },
        daemon: false,
        stop_when: [],
        budgets: null,
        price: null,
        price_fingerprint: '',
      },
    },
  });
  expect(() => overfull.step({ type: 'owned', epoch: 2, host: 'h' }, 1, 0)).toThrow(DerivationUnboundedError);
});
