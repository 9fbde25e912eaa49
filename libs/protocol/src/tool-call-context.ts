/** What a tool's function is given besides its arguments, wherever it runs. */
import type { SessionRef } from './ids.ts';

/** See the top of the file. */
export interface ToolCallContext {
  /** Aborts when the call shall stop. What the function then does is up to it; nobody waits for it long. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** The same when a call is sent again after a crash. */
  readonly idempotencyKey: string;
  /** The epoch that the call was sent with: the outcome of a call that is taken up has to name it. */
  readonly epoch: number;
  readonly ref: SessionRef;
  /** The call's place in a trace, as W3C Trace Context writes it, for whatever it calls; undefined where nobody traces. */
  readonly traceparent?: string | undefined;
  /** Shows a line to watchers; ephemeral. From another process it is cut at 4,096 characters. */
  readonly progress: (text: string) => void;
  /**
   * Says of a file, by its path relative to the session's root, that the call has edited it: file_edited hooks are told. Not for calls
   * whose outcome comes as a command (`long_running`).
   */
  readonly edited: (path: string) => void;
  /** Tells the model something that is not the call's result; it is shown before the next answer. */
  readonly feedback: (text: string) => void;
}
