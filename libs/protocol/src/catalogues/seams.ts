/**
 * The closed catalogue of seams: the points where steers, reminders and inbox feedback are delivered. Most are in a turn;
 * the idle seams and `loop_exit` are outside. Follow-ups and direct reminders of hooks need no seam: the state
 * `steering_check` delivers follow-ups, and a direct reminder is delivered at once.
 */
import * as z from 'zod';

/**
 * The injection channels: verbs whose messages are queued in a session and delivered to the model. With the mode
 * `audit_only` a message is only recorded.
 */
export const INJECTION_VERBS = ['steer', 'remind', 'followup'] as const;
/** One injection channel. */
export type InjectionVerb = (typeof INJECTION_VERBS)[number];

/**
 * When an injection may be delivered. {@link SEAMS} has the seams of each mode.
 *
 * - `interrupt_immediate`: at the earliest seam that delivers messages, also before calls start. Then the calls that have
 *   not started are skipped. It also wakes a suspended session.
 * - `finish_step`: before the next model request, after the calls of the open turn. "Step" means a turn here.
 * - `audit_only`: at the end of the run, into the record only. No prompt contains it. Unlike the others, it does not
 *   continue a run that would end.
 */
export const Mode = z.enum(['interrupt_immediate', 'finish_step', 'audit_only']);
export type Mode = z.infer<typeof Mode>;

/** A mode in the spelling of a sender, including aliases; parsed to {@link Mode}. Unknown modes are rejected. */
export const ModeInput = z
  .enum(['interrupt_immediate', 'finish_step', 'audit_only', 'interrupt', 'steer'])
  .transform((mode): Mode => (mode === 'interrupt' ? 'interrupt_immediate' : mode === 'steer' ? 'finish_step' : mode));

/**
 * The seams in the order of a turn. A turn passes either `iteration_end` or `post_tool_dispatch`. It passes neither if
 * an interrupt skips its whole batch, or if the run ends early (a cancel, a failure, a used-up budget).
 */
export const SEAM_KINDS = [
  'iteration_start',
  'pre_compact',
  'post_compact',
  'pre_tool_dispatch',
  'iteration_end',
  'post_tool_dispatch',
  'daemon_idle_pre',
  'daemon_idle_post',
  'loop_exit',
] as const;
/** One seam of the catalogue. */
export const SeamKind = z.enum(SEAM_KINDS);
export type SeamKind = z.infer<typeof SeamKind>;

/** One row of the catalogue: the injections that this seam delivers. */
export interface Seam {
  /** Modes of the delivered injections. */
  readonly drains: readonly Mode[];
  /** Whether the seam delivers inbox feedback. */
  readonly feedback: boolean;
  /** Its position in a turn, for people. */
  readonly where: string;
}

/** The catalogue. The machine, the generated reference and the tests all read this table. */
export const SEAMS: Readonly<Record<SeamKind, Seam>> = {
  iteration_start: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'start of each turn, after `turn_start`',
  },
  pre_compact: { drains: [], feedback: true, where: 'in each turn, before the decision about a compaction' },
  post_compact: {
    drains: [],
    feedback: true,
    where: 'in each turn, after this decision, and after the compaction if there is one',
  },
  pre_tool_dispatch: {
    drains: ['interrupt_immediate'],
    feedback: false,
    where:
      'before calls start: when the answer is complete, and again after each wait (for hooks, an approval or a free slot). One record holds the `loop_checkpoint` and the `call_started` of the calls that start',
  },
  iteration_end: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'after an answer without calls, a cut-short answer, or a failed step',
  },
  post_tool_dispatch: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'after a batch of calls, when all results are recorded',
  },
  daemon_idle_pre: { drains: ['interrupt_immediate'], feedback: false, where: 'before a daemon session waits' },
  daemon_idle_post: { drains: ['interrupt_immediate'], feedback: false, where: 'after a daemon session waited' },
  loop_exit: { drains: ['audit_only'], feedback: false, where: 'at the end of a run, before `agent_end` is recorded' },
};
