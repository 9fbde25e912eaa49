/** The hook table, the open consult, queued notifications, and open jobs. */
import type { HookPoint, HookTable, JobReceipt, JsonObject } from '@coxswain/protocol';

/** An open consult: one effect for one point, all its registrations together. */
export interface OpenConsult {
  readonly effect_id: string;
  readonly epoch: number;
  readonly point: HookPoint;
  readonly call_id?: string | undefined;
  /** The steer or follow-up that the guard asks about, or the `approve` whose edited call is checked. */
  readonly command_id?: string | undefined;
  readonly hooks: readonly string[];
  /** Those of them whose failure refuses nothing. */
  readonly fail_open?: readonly string[] | undefined;
  readonly payload: JsonObject;
  /** Reports of jobs that its hooks may begin: they are decided when it ends. */
  readonly reports?: readonly DeferredReport[] | undefined;
  /** Asked while the run was unwinding already: what ended the run is no reason to stop asking. */
  readonly of_end?: true | undefined;
}

/** Points at which hooks are notified and cannot answer for the run. */
export const ANNOUNCED = [
  'loop_checkpoint',
  'permission_replied',
  'OnApprovalRequested',
  'OnBudgetThreshold',
  'OnPersonaPaused',
  'OnPersonaResumed',
] as const satisfies readonly HookPoint[];

/** A point that is announced. */
export type AnnouncedPoint = (typeof ANNOUNCED)[number];

/** What hooks are still to be told of. */
export interface Announcement {
  readonly point: AnnouncedPoint;
  /** What the globs of registrations are held against. */
  readonly target: string;
  /** The call that it is about. Its row stands as long as this waits (A2). */
  readonly call_id?: string | undefined;
  readonly detail: JsonObject;
}

/** A job of which no end was reported. */
export interface OpenJob {
  readonly job_id: string;
  readonly hook: string;
  readonly dedupe_key?: string | undefined;
}

/** A report of a job that no hook has started so far. */
export interface DeferredReport {
  readonly command_id: string;
  readonly receipt: JobReceipt;
  readonly body?: string | undefined;
}

/** The members of the context that belong to hooks. */
export interface HooksState {
  readonly hooks: HookTable;
  readonly consult: OpenConsult | null;
  /** What hooks are still to be told of, oldest first. */
  readonly announcements: readonly Announcement[];
  /** Jobs that hooks started and whose end was not reported. */
  readonly jobs: readonly OpenJob[];
}

/** No hooks. */
export const EMPTY_HOOKS: HooksState = { hooks: [], consult: null, announcements: [], jobs: [] };

/** A run begins without notifications of the run before. */
export const HOOKS_AT_RUN_START: Pick<HooksState, 'announcements'> = { announcements: [] };

/** The end of a run leaves no question and no notification open. */
export const HOOKS_AT_RUN_END: Pick<HooksState, 'consult' | 'announcements'> = { consult: null, announcements: [] };
