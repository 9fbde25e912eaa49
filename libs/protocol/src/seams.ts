/** The closed catalogue of seams: the only places where what waits can enter a running turn. */
import * as z from 'zod';

/** When an injection may be delivered. */
export const Mode = z.enum(['interrupt_immediate', 'finish_step', 'audit_only']);
/** See {@link Mode}. */
export type Mode = z.infer<typeof Mode>;

/** A mode as a sender may spell it, aliases included; parses to {@link Mode}. Unknown modes are refused, never defaulted. */
export const ModeInput = z
  .enum(['interrupt_immediate', 'finish_step', 'audit_only', 'interrupt', 'steer'])
  .transform((mode): Mode => (mode === 'interrupt' ? 'interrupt_immediate' : mode === 'steer' ? 'finish_step' : mode));

/** The seams, in the order in which a turn meets them. */
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
/** See {@link SeamKind}. */
export type SeamKind = z.infer<typeof SeamKind>;

/** One row of the catalogue: what a pass of this seam delivers. */
export interface Seam {
  /** Modes of the injections that are delivered here. */
  readonly drains: readonly Mode[];
  /** Whether inbox feedback is delivered here. */
  readonly feedback: boolean;
  /** Where it lies, for people. */
  readonly where: string;
}

/** The catalogue. The machine, the generated reference and the tests all read this table. */
export const SEAMS: Readonly<Record<SeamKind, Seam>> = {
  iteration_start: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'top of each turn, after turn_start',
  },
  pre_compact: { drains: [], feedback: true, where: 'before compaction is considered, every turn' },
  post_compact: { drains: [], feedback: true, where: 'after compaction was considered' },
  pre_tool_dispatch: {
    drains: ['interrupt_immediate'],
    feedback: false,
    where:
      'before calls start: as soon as the answer is there, and again after every wait, in the record of call_started',
  },
  iteration_end: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'a plain answer, before the run would end',
  },
  post_tool_dispatch: {
    drains: ['interrupt_immediate', 'finish_step'],
    feedback: false,
    where: 'after a batch that ran, results recorded',
  },
  daemon_idle_pre: { drains: ['interrupt_immediate'], feedback: false, where: 'before a daemon session waits' },
  daemon_idle_post: { drains: ['interrupt_immediate'], feedback: false, where: 'after a daemon session waited' },
  loop_exit: { drains: ['audit_only'], feedback: false, where: 'after the loop, before the end is written' },
};
