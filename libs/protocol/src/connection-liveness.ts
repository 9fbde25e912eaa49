/** How soon a connection that has gone silent is known to be dead. */

/**
 * A server that stands still, a machine that lost its power and a cut cable say nothing: the connection looks open until
 * somebody asks. Every `pingMs` one asks, and after `unansweredMax` questions without an answer goes elsewhere: four to six
 * seconds, about what a cluster takes to choose another leader. The library's own settings take over four minutes.
 */
export const CONNECTION_LIVENESS = { pingMs: 2_000, unansweredMax: 2 } as const;

/**
 * Heartbeats of a gateway's event stream, and the silence after which a reader gives a connection up and makes another. A
 * lost network closes no connection: a console shows it within three seconds only by what it does not hear.
 */
export const EVENT_STREAM_LIVENESS = { heartbeatMs: 1_000, silenceMaxMs: 2_500 } as const;
