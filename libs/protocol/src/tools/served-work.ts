/** What a process that serves something on the bus tells of each piece of its work, for meters, spans and logs. */

/** A piece of work that begins. */
export interface BegunWork {
  /** A call of a tool, a step of a persona's model, or a question to a hook. */
  readonly kind: 'tool' | 'step' | 'hook';
  /** The tool's name, the persona's, the hook's id. */
  readonly name: string;
  readonly tenant: string;
  readonly sessionId: string;
  /** The tool call that the work is about; undefined for a hook that is asked about something else. */
  readonly callId: string | undefined;
  /** The consult that a hook's question belongs to. */
  readonly effectId?: string | undefined;
  /** Trace context of the request: the span of the session that contains it. */
  readonly traceparent: string | undefined;
}

/** How a piece of work has ended. */
export interface EndedWork {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** Why it went wrong: a catalogued code, where there is one. */
  readonly code?: string | undefined;
}

/** A piece of work that goes on. */
export interface WorkUnderWay {
  /** Trace context for outgoing calls; undefined without tracing. */
  readonly traceparent: string | undefined;
  /** Contract: called once; does not throw. */
  end(how: EndedWork): void;
}

/** Contract: does not throw. */
export interface WorkObserver {
  begin(work: BegunWork): WorkUnderWay;
}
