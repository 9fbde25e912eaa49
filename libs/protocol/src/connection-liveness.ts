/** How soon a connection that has gone silent is known to be dead. */

/**
 * Detection of dead connections. A stopped server, a machine without power and a cut cable send nothing, so the
 * connection looks open. The client sends a ping every `pingMs`, and reconnects to another server after `unansweredMax`
 * pings without an answer: after four to six seconds, about the time of a leader election. The defaults of the library
 * take over four minutes.
 */
export const CONNECTION_LIVENESS = { pingMs: 2_000, unansweredMax: 2 } as const;

/**
 * Heartbeats of a gateway's event stream, and the silence after which a reader gives a connection up and makes another. A
 * lost network closes no connection: a console shows it within three seconds only by what it does not hear.
 */
export const EVENT_STREAM_LIVENESS = { heartbeatMs: 1_000, silenceMaxMs: 2_500 } as const;
