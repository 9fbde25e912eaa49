/** What the functions of a tool get besides the input, wherever they run. */
import type { SessionRef } from '../wire/ids.ts';

/** What `execute` gets besides the input. */
export interface ToolCallContext {
  /** Aborts when the call shall stop. The session does not wait long for the function. */
  readonly abortSignal: AbortSignal;
  readonly toolCallId: string;
  /** The same when a call is sent again after a crash. */
  readonly idempotencyKey: string;
  /** The epoch that the call was sent with. The outcome of a call that is answered later must name it. */
  readonly epoch: number;
  readonly ref: SessionRef;
  /** Absolute path of the session's root folder, in the process of a session host; elsewhere undefined. */
  readonly root?: string | undefined;
  /** The call's place in a trace, in the format of W3C Trace Context; undefined without tracing. */
  readonly traceparent?: string | undefined;
  /** Shows a line to watchers; ephemeral. From another process it is cut at 4,096 characters. */
  readonly progress: (text: string) => void;
  /**
   * Reports a file that the call has edited, by its path relative to the session's root: `file_edited` hooks are asked about it. Not for
   * calls whose outcome arrives as a command (`longRunning`).
   */
  readonly edited: (path: string) => void;
  /** Sends the model a text that is not the call's result; it is shown before the next answer. */
  readonly feedback: (text: string) => void;
}

/** What a `needsApproval` function gets besides the input. */
export interface ToolApprovalContext {
  readonly toolCallId: string;
  readonly ref: SessionRef;
  /** Aborts when the answer is no longer needed. */
  readonly abortSignal: AbortSignal;
}

/** The time that a `needsApproval` function has. After it, a person is asked. */
export const APPROVAL_CHECK_MS = 5_000;
