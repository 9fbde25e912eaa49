/**
 * The messages of XState's inspector, as the library `@statelyai/inspect` sends and receives them: an actor, the events that it is
 * sent, and a snapshot after each. They are made of the journal alone, so that the same record gives the same bytes to everyone
 * who asks, whenever they ask.
 */
import type { JsonObject } from '@coxswain/protocol';
import type { ShownSnapshot } from './shown-state.ts';

/** The release of the library whose messages these are. */
export const INSPECT_VERSION = '0.7.2';

interface Message {
  /** The session’s. */
  readonly sessionId: string;
  /** The same: a session's machine is a root. */
  readonly rootId: string;
  /** The same each time for the same message: who comes again can tell what it has. */
  readonly id: string;
  /** When the record was made, in milliseconds since 1970, as text. */
  readonly createdAt: string;
  readonly _version: string;
}

/** Where in the journal a message belongs. Viewers that do not know this member pass it over. */
export interface InspectedPlace {
  /** The record; 0 before the first. */
  readonly n: number;
  /** Which of its events. */
  readonly index: number;
}

/** There is a machine, and this is what it was when the inspection began. */
export interface ActorMessage extends Message {
  readonly type: '@xstate.actor';
  readonly name: string;
  /** See `machineDefinition`. */
  readonly definition: string;
  readonly snapshot: ShownSnapshot;
  readonly coxswain: Pick<InspectedPlace, 'n'>;
}

/** The machine is sent an event. */
export interface EventMessage extends Message {
  readonly type: '@xstate.event';
  readonly event: JsonObject & { readonly type: string };
  readonly coxswain: InspectedPlace;
}

/** What the machine is after an event. */
export interface SnapshotMessage extends Message {
  readonly type: '@xstate.snapshot';
  readonly event: JsonObject & { readonly type: string };
  readonly snapshot: ShownSnapshot;
  readonly coxswain: InspectedPlace & {
    /** The states that the event has led through, in order: guards that held at once lead on. None where it stayed. */
    readonly entered: readonly string[];
    /** Nothing of this record comes any more. */
    readonly last: boolean;
  };
}

/** Any of them. */
export type InspectionMessage = ActorMessage | EventMessage | SnapshotMessage;

/** What every message of a record has. */
export function messageHead(sessionId: string, at: string): Omit<Message, 'id'> {
  return { sessionId, rootId: sessionId, createdAt: String(Date.parse(at)), _version: INSPECT_VERSION };
}
