/**
 * The messages of XState's inspector, as the library `@statelyai/inspect` sends and receives them: one for the actor,
 * one for each event, and one snapshot after each event. They depend on the journal, the options of the inspection and
 * this release alone, so a repeated inspection gives the same bytes.
 */
import type { JsonObject } from '@coxswain/protocol';
import type { ShownSnapshot } from './shown-state.ts';

/** The release of `@statelyai/inspect` whose message format this is. */
export const INSPECT_VERSION = '0.7.2';

interface Message {
  /** The session's id. */
  readonly sessionId: string;
  /** The session's id again: a session's machine is a root actor. */
  readonly rootId: string;
  /** The same id each time for the same message, so that a client that reconnects can tell which messages it has. */
  readonly id: string;
  /** When the record was made, in milliseconds since 1970, as text. */
  readonly createdAt: string;
  readonly _version: string;
}

/** The position of a message in the journal. Viewers that do not know the member `coxswain` ignore it. */
export interface InspectedPlace {
  /** The record's number; 0 before the first record. */
  readonly n: number;
  /** The index of the event in its record. */
  readonly index: number;
}

/** Announces the machine, with its state at the start of the inspection. */
export interface ActorMessage extends Message {
  readonly type: '@xstate.actor';
  readonly name: string;
  /** The text that `machineDefinition()` returns. */
  readonly definition: string;
  readonly snapshot: ShownSnapshot;
  readonly coxswain: Pick<InspectedPlace, 'n'>;
}

/** One event that the machine receives. */
export interface EventMessage extends Message {
  readonly type: '@xstate.event';
  readonly event: JsonObject & { readonly type: string };
  readonly coxswain: InspectedPlace;
}

/** The machine's state after one event. */
export interface SnapshotMessage extends Message {
  readonly type: '@xstate.snapshot';
  readonly event: JsonObject & { readonly type: string };
  readonly snapshot: ShownSnapshot;
  readonly coxswain: InspectedPlace & {
    /**
     * The states that the event entered, in order. Several if transitions without an event follow, none if the event
     * stays in its state.
     */
    readonly entered: readonly string[];
    /** Whether this is the last message of its record. */
    readonly last: boolean;
  };
}

/** One message of an inspection. */
export type InspectionMessage = ActorMessage | EventMessage | SnapshotMessage;

/** The members that every message of a record has, except its id. */
export function messageHead(sessionId: string, at: string): Omit<Message, 'id'> {
  return { sessionId, rootId: sessionId, createdAt: String(Date.parse(at)), _version: INSPECT_VERSION };
}
