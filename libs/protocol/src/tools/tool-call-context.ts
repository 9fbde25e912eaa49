/**
 * The context of a tool's functions, in addition to the input. Its type is the same in every process.
 */
import type { SessionRef } from '../wire/ids.ts';

/** The context of `execute`. */
export interface ToolCallContext {
  /** Aborts when the call should stop. The session waits only briefly for the function. */
  readonly abortSignal: AbortSignal;
  readonly toolCallId: string;
  /** Identifies the call. It stays the same if the call is sent again, for example after a crash. */
  readonly idempotencyKey: string;
  /** The epoch of the call's request. A late outcome must contain it. */
  readonly epoch: number;
  readonly ref: SessionRef;
  /** Absolute path of the session's root folder in the process of a session host; undefined elsewhere. */
  readonly root?: string | undefined;
  /** The call's position in a trace, as W3C Trace Context; undefined without tracing. */
  readonly traceparent?: string | undefined;
  /** Shows a line to watchers; not stored. From another process it is cut at 4,096 characters. */
  readonly progress: (text: string) => void;
  /**
   * Reports a file that the call edited, by its path relative to the session's root: `file_edited` hooks are called.
   * Not for calls with a late outcome (`longRunning`).
   */
  readonly edited: (path: string) => void;
  /** Sends the model a text that is not the call's result. The model gets it with its next request. */
  readonly feedback: (text: string) => void;
}

/** The context of a `needsApproval` function. */
export interface ToolApprovalContext {
  readonly toolCallId: string;
  readonly ref: SessionRef;
  /** Aborts when the answer is no longer needed. */
  readonly abortSignal: AbortSignal;
}

/** Time limit of a `needsApproval` function, milliseconds. After it, a person is asked. */
export const APPROVAL_CHECK_MS = 5_000;
