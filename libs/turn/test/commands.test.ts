/**
 * Commands at the machine: the first wins, a repetition changes nothing, and an impossible one is rejected with a code.
 */
import { BOUNDS, type CommandInput, type Input } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { SessionActor, type SessionState } from '../src/mod.ts';
import { given } from './given.ts';
import { journalLine } from './journal-line.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  command,
  denied,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  malformed,
  modelFailed,
  modelStopped,
  prompted,
  provisioned,
  reminded,
  replaced,
  resumed,
  returned,
  revoked,
  running,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { calling } from './openings.ts';

const parked = calling('ask');

describe('a command repeated under one id changes nothing the second time:', () => {
  const commands: Readonly<Record<string, readonly [Move, Move]>> = {
    start: [[], started()],
    prompt: [[running(), answered(), toolsClosed], prompted()],
    steer: [running(), steered('m')],
    'steer that interrupts': [parked, steered('m', 'interrupt_immediate')],
    remind: [running(), reminded('m')],
    followup: [running(), followedUp('f')],
    'approve: allow': [parked, approved('a')],
    'approve: deny': [parked, denied('a')],
    cancel: [running(), cancelled()],
    cancel_call: [parked, callCancelled('a')],
    'cancel_call of a running call': [calling('read'), callCancelled('a')],
    'cancel_call of nothing': [running(), callCancelled('z')],
    suspend: [running(), suspended()],
    resume: [[running(), suspended(), answered()], resumed()],
    revoke: [[running(), steered('m')], revoked('m')],
    replace: [[running(), steered('m')], replaced('m')],
    'a revoke that is rejected': [running(), revoked('m')],
    'a rejected one': [running(), resumed()],
    'one that could not be read': [running(), malformed('steer', 'bad', 'invalid_json')],
  };

  test.each(Object.entries(commands))('%s', (_name, [way, input]) => {
    const once = given(way).when(input);
    const { value, context } = once.session.state;
    once.again().thenNothing('repeated command');
    expect(once.session.state.value).toEqual(value);
    expect(once.session.state.context).toEqual(context);
  });

  test('also after its run', () => {
    given(running(), steered('m'), answered(), answered(), toolsClosed)
      .when(steered('m'))
      .thenNothing('repeated command');
  });

  test('and its first answer is known', () => {
    const { session } = given(running(), steered('m'), resumed()).when();
    const told = (input: Move) => {
      session.make(input);
      return session.decision?.kind === 'ignored' ? session.decision.previously : undefined;
    };
    expect(told(steered('m'))).toBe('accepted');
    expect(told(resumed())).toBe('not_suspended');
  });
});

describe('an id with another one as prefix', () => {
  test('is a different id', () => {
    given(running(), steered('m')).when(steered('m1'), steered('m-')).thenIncludes('steering_received m1 finish_step');
    given(running(), steered('m12')).when(steered('m1')).thenJournal('steering_received m1 finish_step');
  });
});

describe('a start or prompt of a running session is session_busy, and only the rejection is recorded:', () => {
  const ways: Readonly<Record<string, Move>> = {
    'while surroundings are resolved': started(),
    'while the model answers': running(),
    'while calls run': [running(), asked(call('a', 'read'))],
    'while calls are parked': parked,
    'while it is torn down': [running(), answered()],
    'while it is suspended': [running(), suspended(), answered()],
    'while a daemon idles': [running({ daemon: true }), answered()],
  };
  test.each(Object.entries(ways))('%s', (_name, way) => {
    const before = given(way).when();
    const { value } = before.session.state;
    before
      .when(started({}, 'start-2'), prompted('prompt-2'))
      .thenJournal('command_rejected session_busy start-2', 'command_rejected session_busy prompt-2');
    expect(before.session.state.value).toEqual(value);
  });
});

describe('a prompt with if_running becomes the message that the session accepts at that moment:', () => {
  const said = (id = 's') => command('prompt', id, { body: 'and this', if_running: 'steer' });
  const steering: Readonly<Record<string, Move>> = {
    'while surroundings are resolved': started(),
    'while the model answers': running(),
    'while calls run': [running(), asked(call('a', 'read'))],
    'while calls are parked': parked,
    'while it is suspended': [running(), suspended(), answered()],
    'while a daemon idles': [running({ daemon: true }), answered()],
  };
  test.each(Object.entries(steering))('a steer %s', (_name, way) => {
    given(way).when(said()).thenEvent('steering_received', { command_id: 's', body: 'and this', mode: 'finish_step' });
  });

  test('the prompt of the next run of a session that has ended', () => {
    given(running(), answered(), toolsClosed).when(said()).thenEvent('prompt_received', { command_id: 's', run: 2 });
  });

  test('the prompt of the next run, which starts automatically, if the run has passed its last seam', () => {
    given(running(), answered())
      .when(said())
      .thenEvent('followup_received', { command_id: 's', begins_run: true })
      .when(toolsClosed)
      .thenEvent('prompt_received', { command_id: 's', run: 2 });
  });

  const late: Readonly<Record<string, { readonly way: Move; readonly rest: Move }>> = {
    'in the last turn, while the model answers': { way: running({ maxTurns: 1 }), rest: answered() },
    'in the last turn, while calls run': {
      way: [running({ maxTurns: 1 }), asked(call('a', 'read'))],
      rest: returned('a'),
    },
    'after a stop condition, while hooks are called': {
      way: [
        running({ stopWhen: [{ tool: 'read' }], hooks: [hook('post_turn')] }),
        asked(call('a', 'read')),
        returned('a'),
      ],
      rest: hooksSaid(undefined),
    },
  };
  test.each(Object.entries(late))('the prompt of the next run %s', (_name, { way, rest }) => {
    given(way)
      .when(said())
      .thenEvent('followup_received', { command_id: 's', begins_run: true })
      .when(rest, toolsClosed)
      .thenEvent('prompt_received', { command_id: 's', run: 2 });
  });

  test('a steer before the first seam of the last turn', () => {
    given(started(), said())
      .when(provisioned({ maxTurns: 1 }))
      .thenEvent('loop_checkpoint', { kind: 'iteration_start', delivered_ids: ['s'] });
  });

  test('a follow-up, while hooks check the last step', () => {
    const plan = { name: 'plan', prompt: 'Do plan.', error_boundary: 'fail' } as const;
    given(running({ steps: [plan], hooks: [hook('PostStep', 'post')] }), answered('a plan'), said())
      .when(hooksSaid(undefined))
      .thenEvent('message_injected', { command_id: 's', origin: 'followup' });
  });
});

describe('a start', () => {
  test('of an ended session is session_exists', () => {
    given(running(), answered(), toolsClosed)
      .when(started({}, 'start-2'))
      .thenJournal('command_rejected session_exists start-2');
    given(running(), modelFailed(), toolsClosed)
      .when(started({}, 'start-2'))
      .thenJournal('command_rejected session_exists start-2');
  });

  test('keeps its settings for the run; a later prompt has none', () => {
    const { session } = given()
      .when(started({ model: 'scripted/demo.yaml', max_turns: 3 }))
      .thenEvent('prompt_received', { settings: { model: 'scripted/demo.yaml', max_turns: 3 } });
    expect(session.state.context.settings).toEqual({ model: 'scripted/demo.yaml', max_turns: 3 });
  });

  test('may contain messages instead of a prompt', () => {
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'look' }] }];
    given()
      .when(command('start', 's', { messages }))
      .thenEvent('prompt_received', { messages });
  });
});

describe('a session that was not started', () => {
  test.each([
    ['prompt', prompted('x')],
    ['steer', steered('x')],
    ['remind', reminded('x')],
    ['followup', followedUp('x')],
    ['approve', approved('a', {}, 'x')],
    ['cancel', cancelled('x')],
    ['cancel_call', callCancelled('a', {}, 'x')],
    ['suspend', suspended('x')],
    ['resume', resumed('x')],
    ['revoke', revoked('m', 'x')],
    ['replace', replaced('m', 'rather', 'x')],
  ])('is not found by %s', (_verb, input) => {
    given().when(input).thenJournal('command_rejected session_not_found x').thenState('stopped');
  });

  test('can be started after other commands were rejected', () => {
    given(steered('x')).when(started()).thenJournal('prompt_received run 1');
  });
});

describe('an unreadable command', () => {
  test('is rejected with its code and field, in any state', () => {
    given(running())
      .when(malformed('steer', 'bad', 'invalid_json'))
      .thenJournal('command_rejected invalid_json bad')
      .thenEvent('command_rejected', { verb: 'steer', field: 'body' });
    given(running(), answered(), toolsClosed)
      .when(malformed('nudge', 'bad', 'unknown_command'))
      .thenJournal('command_rejected unknown_command bad');
  });

  test('with a verb of a later release is rejected as such', () => {
    const nudge: CommandInput = { type: 'command', verb: 'nudge', command_id: 'x', body: {} };
    given(running()).when(nudge).thenJournal('command_rejected not_yet_available x');
  });
});

const uuid = (i: number) => `0190${i.toString(16).padStart(4, '0')}-0000-7000-8000-000000000000`;
/** A time after that of every `uuid`. */
const AFTER_UUIDS_MS = 0x0191_0000_0000;

// Thousands of steps: the actor alone, without the checks of `given`.
describe('bounds', () => {
  function hosted(atMs = 0) {
    const actor = new SessionActor('s1');
    let n = 0;
    const put = (input: Input) => actor.step(input, ++n, atMs).events.map(journalLine);
    put(started());
    return { actor, put };
  }

  test('an injection beyond the maximum is too_many_pending, and none is dropped', () => {
    const { actor, put } = hosted();
    for (let i = 0; i < BOUNDS.pendingInjectionsMax; i++) put(i % 2 === 0 ? steered(`m${i}`) : followedUp(`f${i}`));
    for (const input of [steered('a'), reminded('b'), followedUp('c')]) {
      expect(put(input)).toEqual([`command_rejected too_many_pending ${input.command_id}`]);
    }
    const { pending, followups } = actor.state.context;
    expect(pending.length + followups.length).toBe(BOUNDS.pendingInjectionsMax);
  });

  test('eleven steers of 200 kB: the sixth is pending_full, and so is a longer replacement of a queued text', () => {
    const { put } = hosted();
    const body = 'x'.repeat(200_000);
    const lines = Array.from({ length: 11 }, (_, i) => put(steered(`m${i}`, 'finish_step', { body }))[0]);
    expect(lines.filter((line) => line?.startsWith('steering_received'))).toHaveLength(5);
    expect(lines[5]).toBe('command_rejected pending_full m5');
    expect(put(replaced('m0', 'x'.repeat(250_000)))[0]).toBe('command_rejected pending_full replace-m0');
    expect(put(replaced('m0', 'short', 'r2'))[0]).toMatch(/^control_outcome/);
    expect(put(followedUp('f', { body }))[0]).toMatch(/^followup_received/);
  });

  test('a longer replacement of a queued reminder is too_many_reminders if all reminders together become too large', () => {
    const body = 'x'.repeat(250_000);
    const live = ['a', 'b', 'c', 'd'].map((id) => reminded(id, 'finish_step', { body }));
    const full = [running(), ...live, answered(), reminded('e')];
    given(...full)
      .when(replaced('e', body))
      .thenEvent('command_rejected', { code: 'too_many_reminders', command_id: 'replace-e' });
    given(...full)
      .when(replaced('e', 'short'))
      .thenEvent('control_outcome', { status: 'replaced' });
  });

  test('the newest ids are remembered; a UUIDv7 older than those is command_too_old', () => {
    const { actor, put } = hosted(AFTER_UUIDS_MS);
    for (let i = 10; i < 10 + BOUNDS.commandIdsRemembered; i++) put(callCancelled('z', {}, uuid(i)));
    expect(actor.state.context.command_ids).toHaveLength(BOUNDS.commandIdsRemembered);
    // A forgotten id may be repeated undetected; before that no id is too old.
    const { put: putYoung } = hosted(AFTER_UUIDS_MS);
    expect([...putYoung(steered(uuid(9))), ...putYoung(steered(uuid(5)))]).toEqual([
      `steering_received ${uuid(9)} finish_step`,
      `steering_received ${uuid(5)} finish_step`,
    ]);
    expect(put(steered(uuid(5)))).toEqual([`command_rejected command_too_old ${uuid(5)}`]);
    // Capital letters sort before small ones, and are equivalent.
    const spelled = '01900005-0000-7000-8000-00000000000A';
    expect(put(steered(spelled))).toEqual([`command_rejected command_too_old ${spelled}`]);
    const young = 'FFFFFFFF-0000-7000-8000-00000000000A';
    expect(put(steered(young))).toEqual([`steering_received ${young} finish_step`]);
    expect(put(steered(uuid(5_000)))).toEqual([`steering_received ${uuid(5_000)} finish_step`]);
    // Ids without a time cannot be distinguished from new ones.
    expect(put(steered('plain'))).toEqual(['steering_received plain finish_step']);
  });

  test('a sender whose clock is ahead does not make the ids of all others too old', () => {
    const { put } = hosted(AFTER_UUIDS_MS);
    put(callCancelled('z', {}, 'ffffffff-ffff-7fff-8000-000000000000'));
    for (let i = 10; i < 10 + BOUNDS.commandIdsRemembered - 2; i++) put(callCancelled('z', {}, uuid(i)));
    // The memory is full, and its first UUIDv7 is the one of the future.
    expect(put(callCancelled('z', {}, uuid(6_000)))).toEqual(['control_outcome cancel_call not_found z']);
    expect(put(cancelled(uuid(6_001)))[0]).toBe('control_outcome cancel cancelled');
    expect(put(steered(uuid(9)))).toEqual([`command_rejected command_too_old ${uuid(9)}`]);
  });
});

describe('a rejection contains the right alternative:', () => {
  test('of a prompt to a suspended session, what wakes it', () => {
    given(running(), suspended(), answered())
      .when(prompted())
      .thenEvent('command_rejected', { message: 'the session is suspended; resume it, or interrupt it with a steer' });
    given(running()).when(prompted()).thenEvent('command_rejected', {
      message: 'the session is assistant_streaming; steer it or queue a follow-up',
    });
  });

  test('of a replacement of a cleared reminder, that it is gone', () => {
    given(running(), reminded('r'), answered(), revoked('r'))
      .when(revoked('r', 'revoke-again'))
      .thenEvent('command_rejected', {
        code: 'already_revoked',
        message: 'r is no longer queued: it was revoked, cleared, blocked or collapsed into a newer message',
      });
  });
});

describe('an actor', () => {
  test('is recorded in the events it caused', () => {
    given(running())
      .when(command('steer', 'm', { body: 'do', mode: 'finish_step' }, 'ada'))
      .thenEvent('steering_received', { actor: { name: 'ada', verified: false } });
    given(running())
      .when(command('cancel', 'c', { reason: 'enough' }, 'ada'), modelStopped())
      .thenEvent('control_outcome', { actor: { name: 'ada', verified: false }, reason: 'enough' });
    given(parked, provisionedLate)
      .when(approved('a'))
      .thenEvent('approval_decided', { actor: { name: 'ada', verified: false } });
  });
});

// An outcome without an effect: it must not influence later steps.
const provisionedLate: Move = {
  type: 'provision_outcome',
  effect_id: '1-0',
  status: 'cancelled',
};

test('an outcome of any kind without an open effect is ignored', () => {
  const result = { content: [], is_error: false };
  given(running(), answered(), toolsClosed)
    .when(
      provisionedLate,
      { type: 'consult_outcome', effect_id: '9-9', status: 'answered', answers: [] },
      { type: 'close_outcome', effect_id: '9-9', notes: [] },
      { type: 'call_outcome', effect_id: '9-9', call_id: 'a', status: 'ok', result, duration_ms: 0 },
    )
    .thenNothing('no open effect 9-9');
  given(started()).when(provisioned()).again().thenNothing('no open effect 1-0');
});

test('an outcome of another effect is ignored while one of its kind is open', () => {
  const astray =
    (move: Move): Move =>
    (state) =>
      ({ ...(move as (state: SessionState) => Input)(state), effect_id: '99-9' }) as Input;
  given(started()).when(astray(provisioned())).thenNothing('no open effect 99-9');
  given(running()).when(astray(answered())).thenNothing('no open effect 99-9');
  given(running(), answered()).when(astray(toolsClosed)).thenNothing('no open effect 99-9');
});
