/**
 * The place of the fold: the session, the record that is being folded, the epoch, and the numbering of effects.
 *
 * E2  Effect ids are `<record n>-<index>`: the event that asks for an effect takes the next index of its record.
 */
import type { EventOf, EventType, SessionEvent } from '@coxswain/protocol';

/** The members of the context that say where the fold stands. */
export interface PlaceState {
  readonly session_id: string;
  /** The record that is being folded, and the index of the next effect asked for in it. */
  readonly n: number;
  readonly next_effect: number;
  /** When that record was made, milliseconds since 1970: the only clock that the machine knows. */
  readonly at_ms: number;
  readonly epoch: number;
}

/** The place before the first record of a session. */
export function emptyPlace(sessionId: string): PlaceState {
  return { session_id: sessionId, n: 0, next_effect: 0, at_ms: 0, epoch: 1 };
}

/** The record that an event is part of: its number, and when it was made, milliseconds since 1970. */
interface RecordPlace {
  readonly n: number;
  readonly at_ms: number;
}

/** An event of one type, with its record. */
export type Placed<T extends EventType> = EventOf<T> & RecordPlace;

/** Any event, with its record. */
export type PlacedEvent = SessionEvent & RecordPlace;

/** An effect that is only an id and the epoch in which it was asked for. */
export interface OpenEffect {
  readonly id: string;
  readonly epoch: number;
}

/** The index that the next effect asked for in an event's record gets (E2). */
export function nextIndex(place: PlaceState, event: { readonly n: number }): number {
  return event.n === place.n ? place.next_effect : 0;
}

/** The effect that an event asks for, and the index of the effect after it (E2). */
export function openEffect(
  place: PlaceState,
  event: { readonly n: number },
): { readonly effect: OpenEffect; readonly next_effect: number } {
  const index = nextIndex(place, event);
  return { effect: { id: `${event.n}-${index}`, epoch: place.epoch }, next_effect: index + 1 };
}

/** The id that the next effect asked for in this record gets. Valid once an event of the record has been folded. */
export function effectId(place: PlaceState): string {
  return `${place.n}-${place.next_effect}`;
}
