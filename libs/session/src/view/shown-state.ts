/**
 * A state and an event as inspectors are shown them. What speaks the inspector's protocol may be anybody's program: secrets
 * are taken out as elsewhere, and everything has a bound.
 */
import {
  type Json,
  type JsonObject,
  redactJson,
  type SessionEvent,
  type ShownBounds,
  type StateValue,
} from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';

/** A snapshot as XState writes one; a session's machine has no children and no history. */
export interface ShownSnapshot {
  /** Always: a session that has ended takes the next prompt. */
  readonly status: 'active';
  readonly value: StateValue;
  /** Empty where it was not asked for. */
  readonly context: JsonObject;
  readonly tags: readonly string[];
  readonly children: JsonObject;
  readonly historyValue: JsonObject;
}

/** Of one member of the context. */
const MEMBER: ShownBounds = {
  chars: 2_048,
  scalarChars: 4,
  textChars: 512,
  listItems: 32,
  members: 64,
  depth: 6,
  counts: true,
};
const EVENT: ShownBounds = { ...MEMBER, chars: 8_192, textChars: 2_048, depth: 8 };

/** What says nothing of what the machine does: the ids of the newest commands, by which a repeated one is known. */
const LEFT_OUT: ReadonlySet<string> = new Set(['command_ids']);

/** Shows the states of one session. */
export class StateShower {
  readonly #context: boolean;
  /** Most events change few members: the others are not looked at again. */
  readonly #known = new Map<string, { readonly member: unknown; readonly shown: Json }>();

  /** @param context whether snapshots have it. */
  constructor(context: boolean) {
    this.#context = context;
  }

  /** A state as it is shown. */
  snapshot(state: SessionState): ShownSnapshot {
    return {
      status: 'active',
      value: state.value as StateValue,
      context: this.#context ? this.#contextOf(state) : {},
      tags: [...state.tags],
      children: {},
      historyValue: {},
    };
  }

  #contextOf({ context }: SessionState): JsonObject {
    const all: JsonObject = {};
    for (const [name, member] of Object.entries(context)) {
      if (LEFT_OUT.has(name) || member === undefined) continue;
      const known = this.#known.get(name);
      const shown = known && known.member === member ? known.shown : redactJson(member as Json, MEMBER);
      this.#known.set(name, { member, shown });
      all[name] = shown;
    }
    return all;
  }
}

/** An event as it is shown. */
export function shownEvent(event: SessionEvent): JsonObject & { readonly type: string } {
  return { ...(redactJson(event as unknown as Json, EVENT) as JsonObject), type: event.type };
}
