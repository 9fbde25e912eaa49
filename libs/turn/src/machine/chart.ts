/**
 * The turn machine: the single source of truth for what a session does and may do next. Hosts and replays run it, documents
 * and viewers draw it. This file is one table: states, their events, and the transitions of each event.
 *
 * TURN-1  Its events are the journal's events. The machine raises none itself: `next` derives the following event.
 * TURN-2  It starts no effects. Effects are data in the context, and `effectsOf` lists them. No invoke, after or spawn.
 * TURN-3  Every seam and every wait is a child state, so the chart shows where each seam is passed. Their catalogue is `SEAMS`
 *         (libs/protocol, seams.ts).
 * TURN-4  The call table holds the states of calls that run in parallel. The root accepts events of calls in every
 *         state, except `approval_requested`. The states that wait for calls or approvals have transitions of their own
 *         for some of these events, with guards that read the table. After `approval_requested` the session is in
 *         `function_awaiting_approval`.
 * TURN-5  The guards of an event read the context before it. So a guard about calls leaves out the call of the event, if
 *         the event changes its status. The guards of eventless transitions read the context after the last event.
 * TURN-6  Eventless transitions occur only in `steering_check.resuming`, where no turn is open, and in `tearing_down`.
 */

import type { SnapshotFrom } from 'xstate';
import { emptyContext } from '../core/context.ts';
import { turnSetup } from './guards.ts';

const evolves = { actions: 'evolve' } as const;

/** A transition that reduces its event into the context and enters a state. */
const to = <const T extends string, const G extends string | undefined = undefined>(target: T, guard?: G) =>
  (guard === undefined ? { target, actions: 'evolve' } : { guard, target, actions: 'evolve' }) as G extends string
    ? { readonly guard: G; readonly target: T; readonly actions: 'evolve' }
    : { readonly target: T; readonly actions: 'evolve' };

const STREAM = '#session.assistant_streaming';

const EXECUTE = '#session.function_execute';

const AWAIT = '#session.function_awaiting_approval';

const CHECK = '#session.steering_check';

const DOWN = '#session.tearing_down';

const IDLE = '#session.daemon_idle';

const SUSPENDED = '#session.suspended';

/**
 * After a batch and its post_turn hooks: file_edited hooks if files were edited, then the end of the turn (`closing`).
 */
const afterPostTurnHooks = [to(`${CHECK}.file_edited`, 'has_edits'), to(`${CHECK}.closing`)] as const;

const afterBatch = [to(`${CHECK}.post_turn`, 'hooked_post_turn'), ...afterPostTurnHooks] as const;

/** After the gate hooks: permission_asked hooks check the calls with the ruling `ask`; then the seam follows. */
const afterGate = [to(`${EXECUTE}.permission_asked`, 'has_calls_to_ask'), to(`${EXECUTE}.dispatching`)] as const;

const afterVetting = [to(`${EXECUTE}.gate_tool_calls`, 'hooked_gate_tool_calls'), ...afterGate] as const;

/** The machine. A session without a record counts as ended: its initial state is `stopped`, which has the tag `ended`. */
export const turnMachine = turnSetup.createMachine({
  id: 'session',
  initial: 'stopped',
  context: ({ input }) => emptyContext(input.sessionId),
  on: {
    // Events that are accepted in every state. Here they change the context only, except those that end the run: a cancel,
    // a failure, and a used-up budget. A state overrides an event that has another effect there.
    control_outcome: [to('.tearing_down', 'cancels'), evolves],
    run_failed: to('.tearing_down'),
    budget_threshold: [to('.tearing_down', 'budget_is_used_up'), evolves],
    stop_condition_held: evolves,
    stop_predicates_answered: evolves,
    output_rejected: evolves,
    steering_received: evolves,
    reminder_injected: evolves,
    followup_received: evolves,
    injection_collapsed: evolves,
    reminder_fired: evolves,
    reminder_deduped: evolves,
    reminder_expired: evolves,
    reminder_inherited: evolves,
    feedback_received: evolves,
    feedback_dropped: evolves,
    command_rejected: evolves,
    message_injected: evolves,
    handoff_emitted: evolves,
    call_started: evolves,
    call_accepted: evolves,
    child_started: evolves,
    child_ended: evolves,
    parent_notified: evolves,
    call_cancel_requested: evolves,
    call_returned: evolves,
    files_edited: evolves,
    call_args_rewritten: evolves,
    step_args_rewritten: evolves,
    step_output_rewritten: evolves,
    step_finished: evolves,
    call_ended: evolves,
    edited_call_proposed: evolves,
    edited_call_checked: evolves,
    approval_decided: evolves,
    approval_notified: evolves,
    permission_remembered: evolves,
    permission_forgotten: evolves,
    permissions_changed: evolves,
    hook_call: evolves,
    hook_returned: evolves,
    hook_vetoed: evolves,
    announced: evolves,
    job_report_deferred: evolves,
    job_reported: evolves,
    job_untracked: evolves,
    reminder_dropped: evolves,
    consult_ended: evolves,
    injection_blocked: evolves,
    guard_ended: evolves,
    owned: evolves,
    copy_failed: evolves,
    settings_changed: evolves,
    persona_changed: evolves,
    tools_changed: evolves,
    hooks_changed: evolves,
    prices_changed: evolves,
    reprovisioned: evolves,
    suspend_requested: evolves,
    signal_received: evolves,
    timer_fired: evolves,
    waiting_for_persona: evolves,
    persona_wait_ended: evolves,
    persona_step_lost: evolves,
  },
  states: {
    provisioning: {
      initial: 'resolving',
      states: {
        resolving: {
          tags: ['wait'],
          on: {
            agent_start: [
              to('session_start', 'hooked_session_start'),
              to('user_prompt_submit', 'hooked_user_prompt_submit'),
              to(STREAM),
            ],
          },
        },
        session_start: {
          tags: ['wait'],
          on: { consult_ended: [to('user_prompt_submit', 'hooked_user_prompt_submit'), to(STREAM)] },
        },
        user_prompt_submit: { tags: ['wait'], on: { consult_ended: to(STREAM) } },
      },
    },
    assistant_streaming: {
      initial: 'opening',
      states: {
        opening: {
          on: { step_started: [to('pre_step', 'hooked_pre_step'), evolves], turn_start: to('iteration_start') },
        },
        /**
         * If hooks deny the step and the run continues, no turn starts yet: the session is suspended, or `resuming` decides.
         */
        pre_step: {
          tags: ['wait'],
          on: {
            consult_ended: [
              to('opening', 'turn_may_begin'),
              to(`${SUSPENDED}.entering`, 'suspension_is_due'),
              to(`${CHECK}.resuming`),
            ],
          },
        },
        iteration_start: { tags: ['seam'], on: { loop_checkpoint: to('pre_compact') } },
        pre_compact: {
          tags: ['seam'],
          on: {
            loop_checkpoint: [
              to('vetting_compaction', 'compaction_is_due_and_hooked'),
              to('compacting', 'compaction_is_due'),
              to('post_compact'),
            ],
          },
        },
        vetting_compaction: {
          tags: ['wait'],
          on: { consult_ended: [to('post_compact', 'compaction_is_vetoed'), to('compacting')] },
        },
        compacting: {
          tags: ['wait'],
          on: {
            compaction_started: evolves,
            compaction_done: [to('compacted', 'hooked_post_compact'), to('post_compact')],
            compaction_skipped: to('post_compact'),
          },
        },
        compacted: { tags: ['wait'], on: { consult_ended: to('post_compact') } },
        post_compact: {
          tags: ['seam'],
          on: { loop_checkpoint: [to('transforming', 'hooked_transform_context'), to('streaming')] },
        },
        transforming: { tags: ['wait'], on: { consult_ended: to('streaming') } },
        streaming: {
          tags: ['wait'],
          on: {
            message_complete: [
              to(`${CHECK}.post_turn`, 'is_cut_short_and_hooked'),
              to(`${CHECK}.iteration_end`, 'is_cut_short'),
              { guard: 'is_partial', actions: 'evolve' },
              to(`${EXECUTE}.pre_tool_dispatch`, 'answer_has_calls'),
              to(`${CHECK}.post_turn`, 'hooked_post_turn'),
              to(`${CHECK}.iteration_end`),
            ],
            // The model has failed, and its step with it; the run may continue (STEPS-4, steps/steps.ts).
            step_finished: [
              to(`${CHECK}.post_turn`, 'step_fails_and_hooked'),
              to(`${CHECK}.iteration_end`, 'step_fails'),
            ],
            // The prompt of the same turn is sent again, shortened (COMPACTION-1, compaction/compaction.ts).
            context_overflowed: to('pre_compact'),
          },
        },
      },
    },
    function_execute: {
      initial: 'pre_tool_dispatch',
      states: {
        pre_tool_dispatch: {
          tags: ['seam'],
          on: {
            loop_checkpoint: [
              to(`${CHECK}.post_turn`, 'skips_calls_and_hooked'),
              to(`${CHECK}.closing`, 'skips_calls'),
              to(`${EXECUTE}.post_tool_dispatch`, 'batch_has_ended'),
              to('pre_tool_use', 'has_calls_to_vet'),
              to('gate_tool_calls', 'hooked_gate_tool_calls'),
              to('permission_asked', 'has_calls_to_ask'),
              to('running'),
            ],
          },
        },
        pre_tool_use: {
          tags: ['wait'],
          on: {
            consult_ended: [{ guard: 'has_calls_to_vet', actions: 'evolve' }, ...afterVetting],
            // The check of a queued message has ended. Meanwhile the calls that this state waits for can have been cancelled,
            // or their hooks removed. The same applies to the next two states.
            guard_ended: [{ guard: 'has_calls_to_vet', actions: 'evolve' }, ...afterVetting],
          },
        },
        gate_tool_calls: {
          tags: ['wait'],
          on: {
            consult_ended: afterGate,
            guard_ended: [{ guard: 'hooked_gate_tool_calls', actions: 'evolve' }, ...afterGate],
          },
        },
        permission_asked: {
          tags: ['wait'],
          on: {
            consult_ended: [{ guard: 'has_calls_to_ask', actions: 'evolve' }, to('dispatching')],
            guard_ended: [{ guard: 'has_calls_to_ask', actions: 'evolve' }, to('dispatching')],
          },
        },
        /** A further pass of pre_tool_dispatch after a wait: for hooks, an approval, a free slot or a hand-off. */
        dispatching: {
          tags: ['seam'],
          on: {
            // While the seam waits (`checkpoint`, injections/seam-passes.ts), a running call can end with an unknown outcome that a
            // person must decide.
            approval_requested: to(`${AWAIT}.pre_tool_dispatch`),
            loop_checkpoint: [
              to(`${CHECK}.post_turn`, 'skips_whole_batch_and_hooked'),
              to(`${CHECK}.closing`, 'skips_whole_batch'),
              to('post_tool_dispatch', 'skips_last_open_calls'),
              to('post_tool_dispatch', 'batch_has_ended'),
              to('running'),
            ],
          },
        },
        running: {
          tags: ['wait'],
          on: {
            approval_requested: [to(`${AWAIT}.pre_tool_dispatch`, 'parking_makes_room'), to(AWAIT)],
            call_ended: [to('post_tool_dispatch', 'completes_batch'), to('dispatching', 'makes_room'), evolves],
            // A message can have arrived while hooks checked the hand-off. So the seam is passed again before the
            // hand-off starts.
            consult_ended: [to('dispatching', 'hand_off_is_accepted'), evolves],
            hooks_changed: [to('dispatching', 'last_hand_off_hook_removed'), evolves],
          },
        },
        post_tool_dispatch: {
          tags: ['seam'],
          on: { loop_checkpoint: [to(DOWN, 'batch_ends_run'), ...afterBatch] },
        },
      },
    },
    function_awaiting_approval: {
      initial: 'parked',
      states: {
        parked: {
          tags: ['wait'],
          on: {
            approval_decided: [
              to(`${EXECUTE}.dispatching`, 'is_last_decision_and_lets_call_start'),
              to(`${EXECUTE}.running`, 'is_last_decision'),
              to('pre_tool_dispatch', 'lets_call_start'),
              evolves,
            ],
            steering_received: [to('pre_tool_dispatch', 'is_interrupt'), evolves],
            reminder_injected: [to('pre_tool_dispatch', 'is_interrupt'), evolves],
            approval_requested: [to('pre_tool_dispatch', 'parking_makes_room'), evolves],
            call_ended: [to('pre_tool_dispatch', 'makes_room'), evolves],
          },
        },
        pre_tool_dispatch: {
          tags: ['seam'],
          on: {
            approval_requested: evolves,
            loop_checkpoint: [
              to(`${CHECK}.post_turn`, 'skips_whole_batch_and_hooked'),
              to(`${CHECK}.closing`, 'skips_whole_batch'),
              to(`${EXECUTE}.post_tool_dispatch`, 'skips_last_open_calls'),
              to(`${EXECUTE}.running`, 'skips_calls'),
              // While the seam waited, approvals can have been decided, and running calls can have ended.
              to(`${EXECUTE}.post_tool_dispatch`, 'batch_has_ended'),
              to(`${EXECUTE}.running`, 'nothing_is_parked'),
              to('parked'),
            ],
          },
        },
      },
    },
    steering_check: {
      initial: 'closing',
      states: {
        post_turn: {
          tags: ['wait'],
          on: { consult_ended: [to('iteration_end', 'was_plain_answer'), ...afterPostTurnHooks] },
        },
        file_edited: {
          tags: ['wait'],
          on: { consult_ended: [{ guard: 'has_more_edits', actions: 'evolve' }, to('closing')] },
        },
        iteration_end: {
          tags: ['seam'],
          on: {
            stop_predicates_asked: to('stop_check'),
            loop_checkpoint: [to('post_step', 'completes_step_and_hooked'), to('closing')],
          },
        },
        post_step: { tags: ['wait'], on: { consult_ended: to('closing') } },
        /** Waits for stop predicates: in a turn without calls before its last seam, in a turn with calls after it. */
        stop_check: {
          tags: ['wait'],
          on: { stop_predicates_answered: [to('iteration_end', 'was_plain_answer'), to('closing')] },
        },
        closing: {
          on: {
            stop_predicates_asked: to('stop_check'),
            turn_end: [
              to(DOWN, 'stop_condition_holds'),
              to(DOWN, 'turn_continues_run_at_cap'),
              to(`${SUSPENDED}.pre_suspend`, 'suspension_is_due_and_hooked'),
              to(`${SUSPENDED}.entering`, 'suspension_is_due'),
              to(STREAM, 'turn_continues_run'),
              to(DOWN, 'is_capped'),
              to('follow_up', 'followup_waits'),
              to(`${IDLE}.session_idle`, 'is_daemon_and_hooked'),
              to(IDLE, 'is_daemon'),
              to(DOWN),
            ],
          },
        },
        follow_up: {
          tags: ['wait'],
          on: {
            message_injected: [
              // A message of the runtime, such as about an ended suspension, precedes the follow-up.
              { guard: 'is_direct_message', actions: 'evolve' },
              { guard: 'takes_more_followups', actions: 'evolve' },
              to(STREAM),
            ],
            // More messages can have arrived before the verdict.
            guard_ended: to('resuming'),
          },
        },
        /**
         * Decides how the run continues while no turn is open. That is after a suspension, after the idling of a daemon, or
         * instead of it if work is queued. It is also after hooks deny a step, after hooks or a resume command cancel
         * the request of a suspension, and after the verdict on a queued message.
         */
        resuming: {
          tags: ['wait'],
          always: [
            { guard: 'suspension_is_due_and_hooked', target: `${SUSPENDED}.pre_suspend` },
            { guard: 'suspension_is_due', target: `${SUSPENDED}.entering` },
            { guard: 'is_capped', target: DOWN },
            { guard: 'has_work', target: STREAM },
            { guard: 'followup_waits', target: 'follow_up' },
            // While a queued steer awaits its verdict, none of the guards below passes, and the state waits.
            { guard: 'daemon_may_idle_and_hooked', target: `${IDLE}.session_idle` },
            { guard: 'daemon_may_idle', target: IDLE },
            { guard: 'awaits_no_verdict', target: DOWN },
          ],
        },
      },
    },
    daemon_idle: {
      initial: 'daemon_idle_pre',
      states: {
        session_idle: {
          tags: ['wait'],
          on: {
            consult_ended: [
              to(`${SUSPENDED}.pre_suspend`, 'suspension_is_due_and_hooked'),
              to(`${SUSPENDED}.entering`, 'suspension_is_due'),
              to('daemon_idle_pre'),
            ],
          },
        },
        // Messages that arrived after the last seam of the turn are processed without a wait.
        daemon_idle_pre: {
          tags: ['seam'],
          on: {
            loop_checkpoint: [
              to(`${CHECK}.resuming`, 'has_queued_work'),
              // While the seam waited, a suspension can have been requested.
              to(`${CHECK}.resuming`, 'suspension_is_due'),
              to('waiting'),
            ],
          },
        },
        waiting: {
          tags: ['wait'],
          on: {
            steering_received: [to('daemon_idle_post', 'wakes'), evolves],
            reminder_injected: [to('daemon_idle_post', 'wakes'), evolves],
            followup_received: [to('daemon_idle_post', 'wakes'), evolves],
            guard_ended: [to('daemon_idle_post', 'accepted_message_wakes'), evolves],
            hooks_changed: [to('daemon_idle_post', 'last_hook_removed'), evolves],
            timer_fired: to('daemon_idle_post'),
            control_outcome: [
              to(DOWN, 'cancels'),
              to(`${SUSPENDED}.pre_suspend`, 'suspends_and_hooked'),
              to(`${SUSPENDED}.entering`, 'suspends'),
              evolves,
            ],
          },
        },
        daemon_idle_post: { tags: ['seam'], on: { loop_checkpoint: to(`${CHECK}.resuming`) } },
      },
    },
    suspended: {
      initial: 'entering',
      states: {
        pre_suspend: {
          tags: ['wait'],
          on: { consult_ended: [to('entering', 'suspension_is_due'), to(`${CHECK}.resuming`)] },
        },
        entering: { on: { suspended: to('parked') } },
        parked: {
          tags: ['wait'],
          on: { resumed: [to('post_resume', 'hooked_post_resume'), to(`${CHECK}.resuming`)] },
        },
        post_resume: { tags: ['wait'], on: { consult_ended: to(`${CHECK}.resuming`) } },
      },
    },
    tearing_down: {
      initial: 'unwinding',
      on: {
        // The run is already ending: further failures and cancels change the context only.
        control_outcome: evolves,
        run_failed: evolves,
      },
      states: {
        /**
         * Waits until no work is in flight. After a cancel, a failure or a used-up budget, `runAbort` (core/effects.ts)
         * ends it.
         */
        unwinding: {
          tags: ['wait'],
          on: { message_complete: evolves, compaction_skipped: evolves, agent_start: evolves },
          always: { guard: 'is_quiet', target: 'turn_closing' },
        },
        turn_closing: {
          on: { turn_end: evolves, agent_start: evolves },
          always: { guard: 'turn_is_closed', target: 'file_edited' },
        },
        /** file_edited hooks, for a turn that did not pass `steering_check.file_edited`. */
        file_edited: {
          tags: ['wait'],
          on: { consult_ended: [{ guard: 'has_more_edits', actions: 'evolve' }, to('loop_exit')] },
          always: { guard: 'has_no_edits', target: 'loop_exit' },
        },
        loop_exit: { tags: ['seam'], on: { loop_checkpoint: to('closing_tools') } },
        closing_tools: {
          tags: ['wait'],
          on: { tools_closed: evolves },
          always: { guard: 'tools_are_closed', target: 'session_error' },
        },
        session_error: {
          tags: ['wait'],
          on: { consult_ended: to('session_end') },
          always: { guard: 'skips_session_error', target: 'session_end' },
        },
        session_end: {
          tags: ['wait'],
          on: { consult_ended: to('pre_finish') },
          always: { guard: 'skips_session_end', target: 'pre_finish' },
        },
        pre_finish: {
          tags: ['wait'],
          on: { consult_ended: to('on_unsettled_detected') },
          always: { guard: 'skips_pre_finish', target: 'on_unsettled_detected' },
        },
        on_unsettled_detected: {
          tags: ['wait'],
          on: { consult_ended: to('post_finish') },
          always: { guard: 'skips_on_unsettled_detected', target: 'post_finish' },
        },
        post_finish: {
          tags: ['wait'],
          on: { consult_ended: to('ending') },
          always: { guard: 'skips_post_finish', target: 'ending' },
        },
        ending: { on: { agent_end: [to('#session.failed', 'ends_in_error'), to('#session.stopped')] } },
      },
    },
    stopped: {
      tags: ['ended'],
      on: { session_copied: evolves, prompt_received: to('provisioning'), control_outcome: evolves },
    },
    failed: {
      tags: ['ended'],
      on: { prompt_received: to('provisioning'), control_outcome: evolves },
    },
  },
});

/** A snapshot of the turn machine. */
export type SessionState = SnapshotFrom<typeof turnMachine>;
