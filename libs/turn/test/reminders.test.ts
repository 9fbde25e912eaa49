/**
 * The life of a reminder: queued, delivered, shown, and expired for one reason. REMINDER-1, REMINDER-2.
 */
import { BOUNDS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { countDownAtCompaction, inheritedReminders, type LiveReminder } from '../src/mod.ts';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  command,
  followedUp,
  type Move,
  prompted,
  provisioned,
  reminded,
  replaced,
  returned,
  revoked,
  running,
  started,
  steered,
  toolsClosed,
} from './moves.ts';
import { calling, ended } from './openings.ts';

const keyed = (id: string, mode?: string, more = {}) => reminded(id, mode, { dedupe_key: 'k', ...more });
const brief = (id: string, turns: number) => reminded(id, 'finish_step', { ttl_turns: turns });
/** One turn with a call, after which the run continues. */
const turn = (id: string): Move => [asked(call(id, 'read')), returned(id)];

describe('a reminder', () => {
  test('is recorded with every field and all defaults', () => {
    given(running()).when(reminded('m')).thenEvent('reminder_injected', {
      command_id: 'm',
      body: 'mind m',
      mode: 'finish_step',
      tags: [],
      preserve_on_compact: false,
      propagate: 'session',
      role_hint: 'system',
      at: '1970-01-01T00:00:00.000Z',
    });
    const fields = {
      tags: ['deploy', 'risk'],
      dedupe_key: 'k',
      ttl_turns: 3,
      preserve_on_compact: true,
      propagate: 'all',
      role_hint: 'ephemeral_cache',
    } as const;
    given(running())
      .when(command('remind', 'm', { body: 'mind', mode: 'interrupt', ...fields, tags: [...fields.tags] }, 'ada'))
      .thenEvent('reminder_injected', {
        mode: 'interrupt_immediate',
        ...fields,
        tags: [...fields.tags],
        actor: { name: 'ada', verified: false },
      });
  });

  test('is delivered at its seam, with its role', () => {
    given(running(), reminded('m', 'finish_step', { role_hint: 'developer' }))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m', 'reminder_fired m at iteration_end')
      .thenEvent('reminder_fired', {
        seam: 'iteration_end',
        turn: 1,
        message: { role: 'reminder', content: [{ type: 'text', text: 'mind m' }], role_hint: 'developer' },
      });
  });

  test('with audit_only is recorded, and never shown', () => {
    const { session } = given(running(), reminded('m', 'audit_only', { ttl_turns: 1 }))
      .when(answered(), toolsClosed)
      .thenIncludes('reminder_fired m at loop_exit audit', 'agent_end end_turn');
    expect(session.state.context.reminders).toEqual([]);
  });

  test('without ttl_turns is shown until it is revoked, in later runs too', () => {
    const { session } = given(started(), reminded('m'), provisioned(), turn('a'), turn('b'), answered(), toolsClosed)
      .when(prompted(), provisioned(), answered())
      .thenNever('reminder_expired');
    expect(session.state.context.reminders.map(({ command_id }) => command_id)).toEqual(['m']);
  });
});

describe('ttl_turns', () => {
  test('is the number of turns that show it: it expires at the end of the last of them', () => {
    given(started(), brief('m', 2), provisioned())
      .when(turn('a'))
      .thenNever('reminder_expired')
      .when(turn('b'))
      .thenIncludes('turn_end 2', 'reminder_expired m ttl', 'turn_start 3')
      .when(turn('c'))
      .thenCount('reminder_expired', 1);
  });

  test('does not count the turn in which it arrives after the answer: it was not shown yet', () => {
    given(calling('read'), brief('m', 1))
      .when(returned('a'))
      .thenIncludes('reminder_fired m at post_tool_dispatch', 'turn_end 1', 'turn_start 2')
      .thenNever('reminder_expired')
      .when(answered())
      .thenIncludes('turn_end 2', 'reminder_expired m ttl');
  });

  test('counts a turn that was cancelled', () => {
    given(started(), brief('m', 1), provisioned(), asked(call('a', 'read')))
      .when(cancelled(), returned('a', 'cancelled'), toolsClosed)
      .thenIncludes('turn_end 1', 'reminder_expired m ttl', 'agent_end cancelled');
  });

  test('counts on in the next run', () => {
    given(started(), brief('m', 2), provisioned(), answered(), toolsClosed)
      .when(prompted(), provisioned(), answered())
      .thenIncludes('turn_end 1', 'reminder_expired m ttl');
  });

  test('does not count while it is queued', () => {
    given(running({ steering: 'one_at_a_time' }), steered('s1'), steered('s2'), brief('m', 1))
      .when(turn('a'))
      .thenNever('reminder_fired m', 'reminder_expired m');
  });
});

describe('a dedupe key', () => {
  test('replaces a shown reminder when the newer one is delivered', () => {
    given(started(), keyed('m1'), provisioned())
      .when(keyed('m2'))
      .thenJournal('reminder_injected m2 finish_step')
      .when(answered())
      .thenIncludes(
        'loop_checkpoint iteration_end delivers m2',
        'reminder_deduped m1 by m2',
        'reminder_fired m2 at iteration_end',
      )
      .thenNever('reminder_expired');
  });

  test('of a reminder that is only recorded replaces nothing', () => {
    given(started(), keyed('m1'), provisioned(), keyed('m2', 'audit_only'))
      .when(answered())
      .thenIncludes('reminder_fired m2 at loop_exit audit')
      .thenNever('reminder_deduped');
  });

  test.each([
    ['steers', (id: string) => steered(id, 'finish_step', { dedupe_key: 'k' })],
    ['reminders', (id: string) => keyed(id)],
  ])('collapses queued %s to the newest, at the position of the oldest', (_name, one) => {
    const { session } = given(running(), one('m1'), steered('between'))
      .when(one('m2'))
      .thenIncludes('injection_collapsed m1 into m2')
      .when(one('m3'))
      .thenIncludes('injection_collapsed m2 into m3')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m3 between');
    expect(session.lines().filter((line) => /^(message_injected|reminder_fired) m[12]/.test(line))).toEqual([]);
  });

  test('collapses follow-ups too', () => {
    const one = (id: string) => followedUp(id, { dedupe_key: 'k' });
    given(running(), one('f1'), followedUp('between'), one('f2'))
      .when(answered())
      .thenIncludes('message_injected f2 followup at steering_check')
      .when(answered())
      .thenIncludes('message_injected between followup at steering_check')
      .thenNever('message_injected f1');
  });

  test('keeps kinds apart: a reminder never replaces a user message', () => {
    given(running(), steered('s', 'finish_step', { dedupe_key: 'k' }), followedUp('f', { dedupe_key: 'k' }))
      .when(keyed('m'))
      .thenJournal('reminder_injected m finish_step')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s m');
  });

  test('keeps the mode of the newest: an interrupt may replace a message that could wait', () => {
    given(running(), steered('m1', 'finish_step', { dedupe_key: 'k' }), steered('m2', 'interrupt', { dedupe_key: 'k' }))
      .when(asked(call('a', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m2 skips a')
      .thenNever('message_injected m1');
  });

  test('of a delivered message is free again', () => {
    given(running(), steered('m1', 'finish_step', { dedupe_key: 'k' }), answered())
      .when(steered('m2', 'finish_step', { dedupe_key: 'k' }))
      .thenJournal('steering_received m2 finish_step');
  });
});

describe('a revoke', () => {
  test('removes a queued message: it is never delivered', () => {
    given(running(), steered('m'), followedUp('f'))
      .when(revoked('m'), revoked('f'))
      .thenJournal('control_outcome revoke revoked m', 'control_outcome revoke revoked f')
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn')
      .thenNever('message_injected');
  });

  test('clears a reminder that is shown', () => {
    const { session } = given(started(), reminded('m'), provisioned())
      .when(revoked('m'))
      .thenJournal('control_outcome revoke revoked m', 'reminder_expired m cleared')
      .when(revoked('m', 'again'))
      .thenJournal('command_rejected already_revoked again', 'control_outcome revoke already_revoked m');
    expect(session.state.context.reminders).toEqual([]);
  });

  test('on an ended session removes a message queued for the next run', () => {
    given(ended(), steered('m'))
      .when(revoked('m'))
      .thenJournal('control_outcome revoke revoked m')
      .when(prompted(), provisioned())
      .thenNever('message_injected m');
  });

  test('records its actor and target', () => {
    given(running(), steered('m'))
      .when(command('revoke', 'r', { command_id: 'm' }, 'ada'))
      .thenEvent('control_outcome', { target: 'm', actor: { name: 'ada', verified: false } });
    given(running())
      .when(command('revoke', 'r', { command_id: 'm' }, 'ada'))
      .thenEvent('command_rejected', { code: 'unknown_command_id', field: 'command_id' })
      .thenEvent('control_outcome', {
        status: 'unknown_command_id',
        target: 'm',
        actor: { name: 'ada', verified: false },
      });
  });

  test.each<[string, Move, string]>([
    ['what was delivered', [running(), steered('m'), answered()], 'already_delivered'],
    ['a follow-up that was taken', [running(), followedUp('m'), answered()], 'already_delivered'],
    ['a reminder whose turns are over', [started(), brief('m', 1), provisioned(), turn('a')], 'already_delivered'],
    ['what was revoked', [running(), steered('m'), revoked('m', 'first')], 'already_revoked'],
    [
      'what collapsed',
      [running(), ...['m', 'm2'].map((id) => steered(id, 'finish_step', { dedupe_key: 'k' }))],
      'already_revoked',
    ],
    ['what was never sent', running(), 'unknown_command_id'],
    ['another verb’s command', [running(), command('suspend', 'm')], 'unknown_command_id'],
    ['what was rejected', [running(), command('resume', 'm')], 'unknown_command_id'],
    ['an id that only begins like one that waits', [running(), steered('m1')], 'unknown_command_id'],
  ])('of %s is rejected, and so is a replace', (_what, way, code) => {
    given(way)
      .when(revoked('m'), replaced('m'))
      .thenJournal(
        `command_rejected ${code} revoke-m`,
        `control_outcome revoke ${code} m`,
        `command_rejected ${code} replace-m`,
        `control_outcome replace ${code} m`,
      );
  });
});

describe('a replace', () => {
  test('changes the text of a queued message, which keeps its place, mode and id, and records the actor', () => {
    given(running(), steered('m1'), steered('m2'))
      .when(replaced('m1', 'do something else'))
      .thenJournal('control_outcome replace replaced m1')
      .thenEvent('control_outcome', { body: 'do something else' })
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m1 m2')
      .thenEvent('message_injected', {
        command_id: 'm1',
        message: { role: 'user', content: [{ type: 'text', text: 'do something else' }] },
        replaced_by: 'replace-m1',
      });
  });

  test('of a follow-up and of a reminder', () => {
    given(running(), followedUp('f'), reminded('m'), replaced('f', 'new f'), replaced('m', 'new m'))
      .when(answered(), answered())
      .thenEvent('message_injected', { message: { role: 'user', content: [{ type: 'text', text: 'new f' }] } })
      .thenEvent('reminder_fired', {
        message: { role: 'reminder', content: [{ type: 'text', text: 'new m' }] },
        replaced_by: 'replace-m',
      });
  });

  test('of a shown reminder is too late', () => {
    given(started(), reminded('m'), provisioned())
      .when(replaced('m'))
      .thenIncludes('command_rejected already_delivered replace-m')
      .thenNever('reminder_expired');
  });

  test('can be followed by a revoke', () => {
    given(running(), steered('m'), replaced('m'))
      .when(revoked('m'))
      .thenJournal('control_outcome revoke revoked m')
      .when(answered())
      .thenNever('message_injected');
  });
});

describe('the maximum of queued and shown reminders', () => {
  // Some are shown, one is only recorded, and the others are queued.
  const ids = Array.from({ length: BOUNDS.remindersLiveMax }, (_, i) => `r${i}`);
  const full: Move = [
    started(),
    ids.slice(0, 100).map((id) => reminded(id, 'finish_step', { dedupe_key: id })),
    provisioned(),
    ids.slice(100).map((id) => reminded(id)),
  ];

  test('is accepted, and one more is too_many_reminders', () => {
    given(full)
      .when(reminded('more'))
      .thenJournal('command_rejected too_many_reminders more')
      .when(steered('s'), followedUp('f'))
      .thenJournal('steering_received s finish_step', 'followup_received f');
  });

  test('leaves no room for one with audit_only, which replaces none', () => {
    given(full)
      .when(reminded('newer', 'audit_only', { dedupe_key: 'r7' }))
      .thenJournal('command_rejected too_many_reminders newer');
  });

  test('leaves room again after one is cleared, and for one that replaces another', () => {
    given(full)
      .when(reminded('newer', 'finish_step', { dedupe_key: 'r7' }))
      .thenJournal('reminder_injected newer finish_step')
      .when(revoked('newer'), revoked('r3'), reminded('more'))
      .thenIncludes('reminder_expired r3 cleared', 'reminder_injected more finish_step');
  });
});

function live(id: string, more: Partial<LiveReminder> = {}): LiveReminder {
  return {
    command_id: id,
    body: `mind ${id}`,
    tags: [],
    preserve_on_compact: false,
    propagate: 'session',
    role_hint: 'system',
    run: 1,
    turn: 1,
    age: 1,
    shown: true,
    ...more,
  };
}

describe('a compaction', () => {
  const after = (reminders: readonly LiveReminder[]) =>
    countDownAtCompaction(reminders, (one) => one.turn > 3).map(({ command_id, ttl_left, due }) =>
      [command_id, ttl_left, due].filter((word) => word !== undefined).join(' '),
    );

  test('removes reminders in the replaced part, unless they are preserved', () => {
    expect(after([live('old'), live('pinned', { preserve_on_compact: true }), live('recent', { turn: 4 })])).toEqual([
      'old compaction',
      'pinned',
      'recent',
    ]);
  });

  test('counts as a turn for the remaining ones', () => {
    expect(
      after([
        live('last', { turn: 4, ttl_left: 1 }),
        live('pinned', { preserve_on_compact: true, ttl_left: 3 }),
        live('unseen', { turn: 4, ttl_left: 1, shown: false }),
      ]),
    ).toEqual(['last 0 ttl', 'pinned 2', 'unseen 1']);
  });
});

describe('a child, by reminder_inherited,', () => {
  const session = {
    session_id: 'parent',
    reminders: [
      live('near'),
      live('far', {
        propagate: 'all',
        ttl_turns: 5,
        ttl_left: 2,
        tags: ['t'],
        dedupe_key: 'k',
        role_hint: 'user_block',
      }),
      live('own', { propagate: 'none' }),
      live('gone', { propagate: 'all', due: 'ttl' }),
    ],
  };

  test('inherits reminders for direct children, and does not pass them on', () => {
    expect(inheritedReminders(session)).toEqual([
      expect.objectContaining({ command_id: 'near', from: 'parent', propagate: 'none' }),
      {
        type: 'reminder_inherited',
        command_id: 'far',
        from: 'parent',
        body: 'mind far',
        tags: ['t'],
        dedupe_key: 'k',
        ttl_turns: 2,
        preserve_on_compact: false,
        propagate: 'all',
        role_hint: 'user_block',
      },
    ]);
  });

  test('of a child inherits reminders for all', () => {
    const reminders = inheritedReminders(session).map(({ command_id, propagate }) => live(command_id, { propagate }));
    const child = { session_id: 'child', reminders };
    expect(inheritedReminders(child).map(({ command_id }) => command_id)).toEqual(['far']);
  });
});
