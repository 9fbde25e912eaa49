/** The hook table, the open consult, queued announcements, and open jobs. */
import type { HookPoint, HookTable, JobReceipt, JsonObject } from '@coxswain/protocol';

/** An open consult: one effect that calls all matching registrations of one point. */
export interface OpenConsult {
  readonly effect_id: string;
  readonly epoch: number;
  readonly point: HookPoint;
  readonly call_id?: string | undefined;
  /** The steer or follow-up that hooks check (message-hooks.ts), or the `approve` whose edited call hooks check. */
  readonly command_id?: string | undefined;
  readonly hooks: readonly string[];
  /** Those of `hooks` that had `on_error: fail_open` when they were called. */
  readonly fail_open?: readonly string[] | undefined;
  readonly payload: JsonObject;
  /** Reports of unknown jobs, which hooks of this consult may have started. They are decided at its end. */
  readonly reports?: readonly DeferredReport[] | undefined;
  /** The run was already aborting when the consult was opened, so the end of the run does not abort it. */
  readonly of_end?: true | undefined;
}

/**
 * Points at which calls and seams do not wait for hooks (ANNOUNCE-2, announcements.ts). A hook of `OnApprovalRequested` can
 * nevertheless deny the call.
 */
export const ANNOUNCED = [
  'loop_checkpoint',
  'permission_replied',
  'OnApprovalRequested',
  'OnBudgetThreshold',
  'OnPersonaPaused',
  'OnPersonaResumed',
] as const satisfies readonly HookPoint[];

/** A point in {@link ANNOUNCED}. */
export type AnnouncedPoint = (typeof ANNOUNCED)[number];

/** A queued announcement. */
export interface Announcement {
  readonly point: AnnouncedPoint;
  /** The value for the globs of registrations. */
  readonly target: string;
  /** The call of the announcement. Its row exists as long as the announcement is queued (ANNOUNCE-2, announcements.ts). */
  readonly call_id?: string | undefined;
  readonly detail: JsonObject;
}

/** A job without a reported end. */
export interface OpenJob {
  readonly job_id: string;
  readonly hook: string;
  readonly dedupe_key?: string | undefined;
}

/** A report of a job whose receipt is not recorded so far. */
export interface DeferredReport {
  readonly command_id: string;
  readonly receipt: JobReceipt;
  readonly body?: string | undefined;
}

/** The members of the context for hooks. */
export interface HooksState {
  readonly hooks: HookTable;
  readonly consult: OpenConsult | null;
  /** Queued announcements, oldest first. */
  readonly announcements: readonly Announcement[];
  /** Jobs that hooks started, without a reported end. */
  readonly jobs: readonly OpenJob[];
}

/** No hooks. */
export const EMPTY_HOOKS: HooksState = { hooks: [], consult: null, announcements: [], jobs: [] };

/** A run starts without announcements of the previous run. */
export const HOOKS_AT_RUN_START: Pick<HooksState, 'announcements'> = { announcements: [] };

/** The end of a run leaves no consult and no announcement open. */
export const HOOKS_AT_RUN_END: Pick<HooksState, 'consult' | 'announcements'> = { consult: null, announcements: [] };
