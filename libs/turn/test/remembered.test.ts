/**
 * Remembered decisions: the later calls that they decide, the calls that they do not, and their revocation.
 */
import { BOUNDS, type JsonObject, type RememberedRule } from '@coxswain/protocol';
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  denied,
  hook,
  type Move,
  prompted,
  provisioned,
  returned,
  revoked,
  running,
  takenOver,
  toolsClosed,
} from './moves.ts';

const ask = (id: string, args: JsonObject = { key: 'one' }) => call(id, 'ask', { args });
/** A call was allowed with a remembered rule for the session or its persona; the model has its result. */
const remembered = (scope: 'session' | 'persona' = 'session'): Move => [
  running(),
  asked(ask('a')),
  approved('a', { remember: scope }),
  returned('a'),
];
const rule = (more: Partial<RememberedRule> = {}): RememberedRule => ({
  id: 'elsewhere',
  session: 's0',
  scope: 'persona',
  persona: 'coder',
  source: 'host',
  fingerprint: 'coder',
  root: '/',
  tool: 'ask',
  match: { kind: 'args', args: { key: 'one' } },
  action: 'allow',
  at: '2026-01-01T00:00:00.000Z',
  ...more,
});

describe('a remembered decision', () => {
  test('is an event with the whole rule, before the decision', () => {
    given(running(), asked(ask('a')))
      .when(approved('a', { remember: 'session', reason: 'it only looks' }))
      .thenJournal(
        'permission_remembered allow-a session',
        'approval_decided a allow',
        'control_outcome approve allowed a because it only looks',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      )
      .thenEvent('permission_remembered', {
        call_id: 'a',
        rule: {
          id: 'allow-a',
          session: 's1',
          scope: 'session',
          persona: 'coder',
          source: 'host',
          fingerprint: 'coder',
          root: '/',
          tool: 'ask',
          match: { kind: 'args', args: { key: 'one' } },
          action: 'allow',
          actor: { name: 'ada', verified: false },
          reason: 'it only looks',
          at: '1970-01-01T00:00:00.000Z',
        },
      });
  });

  test('lets the same call run without an approval, in this run and in the next', () => {
    given(remembered())
      .when(asked(ask('b')))
      .thenIncludes('call_started b')
      .thenNever('approval_requested b');
    given(remembered(), answered(), toolsClosed, prompted(), provisioned())
      .when(asked(ask('b')))
      .thenIncludes('call_started b')
      .thenNever('approval_requested b');
  });

  test('does not apply to a call with other arguments', () => {
    given(remembered())
      .when(asked(ask('b', { key: 'two' })))
      .thenIncludes('approval_requested b')
      .thenNever('call_started b');
  });

  test('applies to the edited arguments', () => {
    const edited: Move = [
      running(),
      asked(ask('a')),
      approved('a', { remember: 'session', args: { key: 'safe' } }),
      returned('a'),
    ];
    given(edited)
      .when(asked(ask('b')))
      .thenIncludes('approval_requested b');
    given(edited)
      .when(asked(ask('b', { key: 'safe' })))
      .thenIncludes('call_started b');
  });

  test('to deny refuses the same call, with the rule as reason', () => {
    given(running(), asked(ask('a')), denied('a', { remember: 'session' }))
      .when(asked(ask('b')))
      .thenIncludes('call_ended b denied by rule')
      .thenNever('approval_requested b')
      .thenEvent('call_ended', {
        call_id: 'b',
        denial: { by: 'rule', rule: 'remembered:deny-a', args: { key: 'one' } },
      });
  });

  test('to deny precedes one to allow', () => {
    const both = [rule(), rule({ id: 'never', action: 'deny' })];
    given(running({ remembered: both }))
      .when(asked(ask('a')))
      .thenIncludes('call_ended a denied by rule');
  });

  test('never overrules a rule that denies', () => {
    given(running({ remembered: [rule({ tool: 'forbidden' })] }))
      .when(asked(call('a', 'forbidden', { args: { key: 'one' } })))
      .thenIncludes('call_ended a denied by rule')
      .thenNever('call_started a');
  });

  test('skips permission_asked hooks: no approval is needed', () => {
    const hooks = [hook('permission_asked')];
    given(running({ hooks, remembered: [rule()] }))
      .when(asked(ask('a')))
      .thenIncludes('call_started a')
      .thenNever('hook_call');
  });

  test('of a call with too large arguments is rejected, and decides nothing', () => {
    given(running(), asked(ask('a', { note: 'x'.repeat(BOUNDS.rememberedMatchMaxBytes) })))
      .when(approved('a', { remember: 'session' }))
      .thenJournal('command_rejected not_rememberable allow-a', 'control_outcome approve not_rememberable a')
      .thenState('function_awaiting_approval.parked');
  });

  test('is rejected beyond the maximum; a revocation makes room', () => {
    const full = Array.from({ length: BOUNDS.rememberedRulesMax }, (_, i): Move => {
      const id = `a${i}`;
      return [asked(ask(id, { key: id })), approved(id, { remember: 'session' }), returned(id)];
    });
    given(running({ maxTurns: 1_000 }), ...full, asked(ask('b')))
      .when(approved('b', { remember: 'session' }))
      .thenJournal('command_rejected too_many_rules allow-b', 'control_outcome approve too_many_rules b')
      .when(revoked('allow-a0'), approved('b', { remember: 'session' }, 'again'))
      .thenIncludes('permission_remembered again session', 'approval_decided b allow');
  });

  test.each([
    ['another root', { root: '/elsewhere' }],
    ['another source of the definition', { identity: { source: 'request' as const, fingerprint: 'coder' } }],
    ['another definition', { identity: { source: 'host' as const, fingerprint: 'changed' } }],
  ])('does not apply to a run with %s', (_, changed) => {
    given(running({ remembered: [rule()], ...changed }))
      .when(asked(ask('a')))
      .thenIncludes('approval_requested a')
      .thenNever('call_started a');
  });

  test('does not decide a call that is already pending', () => {
    given(running(), asked(ask('a'), ask('b')))
      .when(approved('a', { remember: 'session' }))
      .thenIncludes('call_started a')
      .thenNever('call_started b');
  });
});

describe('a persona', () => {
  test('has its remembered rules recorded in the journal of each new session', () => {
    given()
      .when(running({ remembered: [rule()] }))
      .thenIncludes('persona_changed', 'permissions_changed 1', 'agent_start run 1');
  });

  test('has its rules recorded again only if they have changed', () => {
    const around = { remembered: [rule()] };
    const next: Move = [answered(), toolsClosed, prompted()];
    given(running(around), next)
      .when(provisioned(around))
      .thenIncludes('agent_start run 2')
      .thenCount('permissions_changed', 1);
    given(running(around), next).when(provisioned()).thenIncludes('permissions_changed 0', 'agent_start run 2');
  });

  test('remembers in the session itself immediately', () => {
    given(remembered('persona'))
      .when(asked(ask('b')))
      .thenIncludes('call_started b');
  });

  test('does not remember rules of a fork’s origin: they may be revoked since', () => {
    given(remembered('persona'), takenOver())
      .when(asked(ask('b')))
      .thenIncludes('approval_requested b');
    given(running({ remembered: [rule()] }), takenOver())
      .when(asked(ask('b')))
      .thenIncludes('approval_requested b');
    given(remembered('session'), takenOver())
      .when(asked(ask('b')))
      .thenIncludes('call_started b');
  });
});

describe('a revocation of a remembered rule', () => {
  test('makes the next such call need an approval again', () => {
    given(remembered())
      .when(revoked('allow-a'))
      .thenJournal('control_outcome revoke revoked allow-a', 'permission_forgotten allow-a')
      .when(asked(ask('b')))
      .thenIncludes('approval_requested b');
  });

  test('applies after the end of the run, and to the rules of the next run', () => {
    const own = rule({ id: 'allow-a', session: 's1' });
    given(remembered('persona'), answered(), toolsClosed)
      .when(revoked('allow-a'))
      .thenJournal('control_outcome revoke revoked allow-a', 'permission_forgotten allow-a')
      .when(prompted(), provisioned({ remembered: [own] }), asked(ask('b')))
      .thenIncludes('approval_requested b');
  });

  // The copied input names the origin, and the rule of the session itself the copy.
  test('applies in the copied part of a fork as in its origin', () => {
    const ofOrigin = rule({ id: 'allow-a', session: 's0' });
    given(remembered('persona'), answered(), toolsClosed, prompted(), provisioned({ remembered: [ofOrigin] }))
      .when(revoked('allow-a'), asked(ask('b')))
      .thenIncludes('approval_requested b');
  });

  test('counts once: the second is rejected', () => {
    given(remembered(), revoked('allow-a'))
      .when(revoked('allow-a', 'again'))
      .thenJournal('command_rejected already_revoked again', 'control_outcome revoke already_revoked allow-a');
  });
});
