/**
 * A state and an event as inspectors show them. The receiver may be any program: secrets are redacted, and each part has a
 * size limit.
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

/** A snapshot in XState's format. A session's machine has no child actors and no history states. */
export interface ShownSnapshot {
  /** Always `active`: a session that ended accepts another prompt. */
  readonly status: 'active';
  readonly value: StateValue;
  /** Empty where the context was not asked for. */
  readonly context: JsonObject;
  readonly tags: readonly string[];
  readonly children: JsonObject;
  readonly historyValue: JsonObject;
}

/** Bounds of one member of the context. */
const MEMBER: ShownBounds = {
  chars: 2_048,
  valueChars: 4,
  textChars: 512,
  listItems: 32,
  members: 64,
  depth: 6,
  counts: true,
};
const EVENT: ShownBounds = { ...MEMBER, chars: 8_192, textChars: 2_048, depth: 8 };

/** Members without meaning for a viewer: ids of the newest commands, which only detect repeated commands. */
const LEFT_OUT: ReadonlySet<string> = new Set(['command_ids']);

/** Shows the states of one session. */
export class StateShower {
  readonly #context: boolean;
  /** Shown members by name. Most events change few members; an unchanged member is not redacted again. */
  readonly #known = new Map<string, { readonly member: unknown; readonly shown: Json }>();

  /** @param context whether snapshots include the context. */
  constructor(context: boolean) {
    this.#context = context;
  }

  /** The shown form of a state. */
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

/** The shown form of an event. */
export function shownEvent(event: SessionEvent): JsonObject & { readonly type: string } {
  return { ...(redactJson(event as unknown as Json, EVENT) as JsonObject), type: event.type };
}
