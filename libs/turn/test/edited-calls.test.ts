/**
 * Edited calls: their guards, the effect of a refusal, and commands during the check by hooks.
 */
import { BOUNDS, type HookRegistration, type JsonObject } from '@coxswain/protocol';
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  approvalExpires,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  denied,
  Failing,
  hook,
  hooksCancelled,
  hooksChanged,
  hooksSaid,
  later,
  type Move,
  owned,
  returned,
  running,
  type Surroundings,
  steered,
} from './moves.ts';

const ARGS = { amount: 40 };
const EDITED = { amount: 4_000 };
const edit = (body: JsonObject = {}, id?: string) => approved('a', { args: EDITED, ...body }, id);
const noObjection = hooksSaid(undefined);

/** One parked call; hooks accepted the model's own arguments. */
const parked = (around: Surroundings = {}): Move => [
  running(around),
  asked(call('a', 'ask', { args: ARGS })),
  ...(around.hooks?.some(({ point }) => point === 'PreToolUse') ? [noObjection] : []),
];
const hooked = (more: Partial<HookRegistration> = {}): Move => parked({ hooks: [hook('PreToolUse', 'limit', more)] });

describe('an edited call', () => {
  test('starts with the edited arguments if hooks have no objection', () => {
    given(hooked())
      .when(edit())
      .thenJournal('edited_call_proposed a by allow-a', 'hook_call limit PreToolUse a')
      .thenEvent('hook_call', {
        command_id: 'allow-a',
        payload: {
          event: 'PreToolUse',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          tool: { name: 'ask', args: EDITED, call_id: 'a' },
        },
      })
      .thenState('function_awaiting_approval.parked')
      .thenEffects('consult PreToolUse a')
      .when(noObjection)
      .thenJournal(
        'hook_returned limit PreToolUse a no_objection',
        'approval_decided a allow edited',
        'control_outcome approve allowed a',
        'edited_call_checked a by allow-a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      )
      .thenEvent('call_started', { call_id: 'a', args: EDITED });
  });

  test.each([
    ['denies it', { deny: 'over 100' }, { reason: 'over 100' }],
    ['fails', new Failing(), { reason: 'hook_timeout' }],
    ['is unavailable', new Failing('hook_unavailable'), { reason: 'hook_unavailable' }],
    [
      'answers what is not allowed there',
      { decision: 'ask' },
      { reason: 'PreToolUse: "decision" is not allowed here, only at permission_asked' },
    ],
    [
      'would change the arguments',
      { args: { amount: 100, password: 'hunter2' } },
      {
        reason: 'it would change the approved arguments',
        args: { amount: 100, password: '[redacted]' },
      },
    ],
  ] as const)('stays parked if a hook %s', (_, said, why) => {
    given(hooked(), edit())
      .when(hooksSaid(said))
      .thenIncludes(
        'hook_vetoed limit PreToolUse a deny',
        'command_rejected edited_call_denied allow-a',
        'control_outcome approve edited_call_denied a',
        'edited_call_checked a by allow-a',
      )
      .thenNever('approval_decided', 'call_started a')
      .thenEvent('command_rejected', {
        field: 'args',
        detail: { by: 'hook', hook: 'limit', ...why },
      })
      .thenState('function_awaiting_approval.parked')
      .when(approved('a', {}, 'as-asked'))
      .thenIncludes('approval_decided a allow', 'call_started a')
      .thenEvent('call_started', { args: ARGS });
  });

  test('starts if a hook returns the same arguments, or fails with fail-open', () => {
    given(hooked(), edit())
      .when(hooksSaid({ args: EDITED }))
      .thenIncludes('approval_decided a allow edited', 'call_started a');
    given(hooked({ on_error: 'fail_open' }), edit())
      .when(hooksSaid(new Failing()))
      .thenIncludes('approval_decided a allow edited', 'call_started a');
  });

  test('stays parked if a rule denies it; no hook is called', () => {
    const rules = [
      { tool: 'ask', when: 'key == "no"', action: 'deny' as const },
      { tool: 'ask', action: 'ask' as const },
    ];
    given(parked({ rules, hooks: [hook('PreToolUse')] }))
      .when(approved('a', { args: { key: 'no' } }))
      .thenJournal('command_rejected edited_call_denied allow-a', 'control_outcome approve edited_call_denied a')
      .thenEvent('command_rejected', { field: 'args', detail: { by: 'rule', rule: 'rules[0]' } })
      .thenState('function_awaiting_approval.parked');
  });

  test('stays parked if a remembered rule denies it, also one created during the check', () => {
    const two: Move = [
      running({ hooks: [hook('PreToolUse', 'limit')] }),
      asked(call('a', 'ask', { args: ARGS }), call('b', 'ask', { args: EDITED })),
      noObjection,
      noObjection,
    ];
    given(two, denied('b', { remember: 'session' }))
      .when(edit())
      .thenJournal('command_rejected edited_call_denied allow-a', 'control_outcome approve edited_call_denied a')
      .thenEvent('command_rejected', { detail: { by: 'rule', rule: 'remembered:deny-b' } });
    given(two, edit(), denied('b', { remember: 'session' }))
      .when(noObjection)
      .thenIncludes('command_rejected edited_call_denied allow-a')
      .thenNever('call_started a');
  });

  test('is remembered with its edited arguments after the decision', () => {
    given(hooked())
      .when(edit({ remember: 'session' }))
      .thenNever('permission_remembered allow-a session')
      .when(noObjection)
      .thenIncludes('permission_remembered allow-a session', 'approval_decided a allow edited', 'call_started a')
      .when(returned('a'), asked(call('b', 'ask', { args: EDITED })), noObjection)
      .thenIncludes('call_started b');
  });

  test('is rejected if the arguments of its batch would be too large', () => {
    const size = BOUNDS.batchArgsMaxBytes / 4;
    const large = (text: string) => ({ text: text.repeat(size) });
    given(running(), asked(...['a', 'b', 'c', 'd'].map((id) => call(id, 'ask'))))
      .when(...['a', 'b', 'c'].map((id) => approved(id, { args: large(id) })), approved('d', { args: large('d') }))
      .thenIncludes('approval_decided c allow edited', 'command_rejected body_too_large allow-d')
      .thenState('function_awaiting_approval.parked');
  });

  test('with the model’s arguments counts as unedited: no hook is called again', () => {
    given(hooked())
      .when(approved('a', { args: ARGS }))
      .thenIncludes('approval_decided a allow', 'call_started a')
      .thenCount('hook_call', 1);
  });
});

describe('while hooks check an edited call', () => {
  test.each([
    ['another person allows the call as it is', approved('a', {}, 'other'), 'already_decided', 'call_started a'],
    ['another person denies it', denied('a'), 'already_decided', 'call_ended a denied by user'],
    ['a message interrupts', steered('m', 'interrupt_immediate'), 'not_pending', 'call_ended a skipped'],
    ['the call is cancelled', callCancelled('a'), 'not_pending', 'call_ended a cancelled'],
    ['the run is cancelled', cancelled(), 'not_pending', 'approval_decided a aborted'],
  ] as const)('%s: the edit is rejected immediately, and the answers change nothing', (_, move, code, then) => {
    given(hooked(), edit())
      .when(move)
      .thenIncludes(then)
      .thenIncludes(`command_rejected ${code} allow-a`, `control_outcome approve ${code} a`)
      .when(hooksCancelled)
      .thenIncludes('edited_call_checked a by allow-a')
      .thenCount('approval_decided', 1)
      .thenCount('command_rejected', 1)
      .thenNever('approval_decided a allow edited');
  });

  test('the approval may expire', () => {
    given(parked({ expireAfterMs: 60_000, hooks: [hook('PreToolUse', 'limit')] }), edit(), later(60_000))
      .when(approvalExpires('a'))
      .thenIncludes('approval_decided a expired', 'command_rejected already_decided allow-a')
      .thenEvent('command_rejected', { detail: { by: 'expiry', decision: 'deny' } });
  });

  test('another edit is rejected, and a repetition changes nothing', () => {
    given(hooked(), edit())
      .when(edit({}, 'second'))
      .thenJournal('command_rejected edit_pending second', 'control_outcome approve edit_pending a')
      .when(noObjection)
      .thenIncludes('approval_decided a allow edited');
    given(hooked(), edit()).when(edit()).thenNothing('hooks are already checking this edit');
  });

  test('a new owner of the session calls them again', () => {
    given(hooked(), edit())
      .when(owned(2))
      .thenEffects('consult PreToolUse a')
      .when(noObjection)
      .thenIncludes('approval_decided a allow edited', 'call_started a');
  });

  test('its siblings start and return', () => {
    given(
      running({ hooks: [hook('PreToolUse', 'limit', { pattern: 'ask' })] }),
      asked(call('a', 'ask', { args: ARGS }), call('b', 'read')),
      noObjection,
    )
      .when(edit(), returned('b'))
      .thenIncludes('call_ended b ok')
      .thenState('function_awaiting_approval.parked')
      .when(noObjection)
      .thenIncludes('call_started a');
  });
});

describe('while hooks check an edited call, other decisions', () => {
  test('are rejected, and permission_replied hooks are called afterwards', () => {
    given(
      running({ hooks: [hook('PreToolUse', 'limit', { pattern: 'ask' }), hook('permission_replied')] }),
      asked(call('a', 'ask', { args: ARGS }), call('b', 'ask')),
      noObjection,
      noObjection,
      edit(),
      denied('b'),
    )
      .when(noObjection)
      .thenIncludes('hook_call permission_replied permission_replied', 'call_started a')
      .thenEvent('hook_call', {
        payload: {
          event: 'permission_replied',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          tool: { name: 'ask', args: {}, call_id: 'b' },
          decision: 'deny',
          by: 'user',
        },
      });
  });
});

describe('an edit that waits for other hooks', () => {
  const both = [hook('PreToolUse', 'limit', { pattern: 'ask' }), hook('PostToolUse', 'post', { pattern: 'read' })];
  const waiting: Move = [
    running({ hooks: both }),
    asked(call('a', 'ask', { args: ARGS }), call('b', 'read')),
    noObjection,
    returned('b'),
    edit(),
  ];

  test('is checked after they have answered', () => {
    given(waiting)
      .when(noObjection)
      .thenIncludes('call_ended b ok', 'hook_call limit PreToolUse a')
      .thenState('function_awaiting_approval.parked');
  });

  test('is rejected if the hooks for it were removed: a later decision calls the current ones', () => {
    given(waiting, hooksChanged([]))
      .when(noObjection)
      .thenIncludes('command_rejected edit_pending allow-a', 'control_outcome approve edit_pending a')
      .thenState('function_awaiting_approval.parked')
      .when(edit({}, 'again'))
      .thenIncludes('approval_decided a allow edited', 'call_started a');
  });
});
