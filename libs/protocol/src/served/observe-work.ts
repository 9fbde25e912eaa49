/**
 * Observation of the work of a process that serves tools, personas or hooks: for meters, spans and logs.
 */

/** A piece of work at its start. */
export interface StartedWork {
  /** A call of a tool, a model step of a persona, or a question to a hook. */
  readonly kind: 'tool' | 'step' | 'hook';
  /** The tool's name, the persona's name, or the hook's id. */
  readonly name: string;
  readonly tenant: string;
  readonly sessionId: string;
  /** The tool call of the work; `step-<attempt>` for a model step; undefined for a hook without a call. */
  readonly callId: string | undefined;
  /** The consult that asks a hook; undefined for calls and steps. */
  readonly effectId?: string | undefined;
  /** Trace context of the request: the span in the session under which the work runs; undefined without tracing. */
  readonly traceparent: string | undefined;
}

/** The end of a piece of work. */
export interface EndedWork {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** Why it failed: a catalogued code, if there is one. */
  readonly code?: string | undefined;
}

/** A running piece of work. */
export interface RunningWork {
  /** Trace context for outgoing calls; undefined without tracing. */
  readonly traceparent: string | undefined;
  /** Reports the end. Contract: the caller calls it once; it does not throw. */
  end(how: EndedWork): void;
}

/** Observes the work of a process. Contract: `begin` does not throw. */
export interface WorkObserver {
  begin(work: StartedWork): RunningWork;
}
