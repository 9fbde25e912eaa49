/**
 * The place of a session in its journal: the record of the newest event, the epoch of its owner, and the numbering of
 * effects.
 *
 * EFFECT-1  Effect ids are `<record n>-<index>`: an event takes the next index of its record for each effect it requests.
 */
import type { EventOf, EventType, SessionEvent } from '@coxswain/protocol';

/** The members of the context for the place in the journal. */
export interface PlaceState {
  readonly session_id: string;
  /** The number of the record of the newest event, and the index of its next effect. */
  readonly n: number;
  readonly next_effect: number;
  /** Time of that record, milliseconds since 1970. The machine has no clock but the times of records. */
  readonly at_ms: number;
  /** The epoch of the session's owner: each new owner claims the session with a higher one. */
  readonly epoch: number;
}

/** The place before the first record. */
export function emptyPlace(sessionId: string): PlaceState {
  return { session_id: sessionId, n: 0, next_effect: 0, at_ms: 0, epoch: 1 };
}

/** The record of an event: its number, and its time in milliseconds since 1970. */
interface RecordPlace {
  readonly n: number;
  readonly at_ms: number;
}

/** An event of one type, with its record. */
export type Placed<T extends EventType> = EventOf<T> & RecordPlace;

/** Any event, with its record. */
export type PlacedEvent = SessionEvent & RecordPlace;

/** The id of an open effect, and the epoch of its request. */
export interface OpenEffect {
  readonly id: string;
  readonly epoch: number;
}

/** The index of the next effect in an event's record (EFFECT-1). */
export function nextIndex(place: PlaceState, event: { readonly n: number }): number {
  return event.n === place.n ? place.next_effect : 0;
}

/** The effect that an event requests, and the index of the effect after it (EFFECT-1). */
export function openEffect(
  place: PlaceState,
  event: { readonly n: number },
): { readonly effect: OpenEffect; readonly next_effect: number } {
  const index = nextIndex(place, event);
  return { effect: { id: `${event.n}-${index}`, epoch: place.epoch }, next_effect: index + 1 };
}

/** The id of the next effect in this record. Valid after the first event of the record. */
export function nextEffectId(place: PlaceState): string {
  return `${place.n}-${place.next_effect}`;
}
