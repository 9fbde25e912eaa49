/** The effects that a session waits for, with the messages that a model saw when they were opened. */
import { type EventOf, type Message, type SessionEvent, userText } from '@coxswain/protocol';
import { compactionInstructions } from '../effects/ask-compaction.ts';
import { Transcript } from '../view/transcript.ts';

/** The system prompt and the messages that a model saw. Built on demand: only if the model answers. */
export type Shown = () => { readonly system: string; readonly messages: readonly Message[] };

/** An effect that the session waits for. */
export interface OpenEffect {
  /** The time of the record that opened it, milliseconds since 1970. */
  readonly atMs: number;
  /** Null where spans exclude content. */
  readonly shown: Shown | null;
}

/** The open effects of a session, folded from its records. */
export class OpenEffects {
  readonly #open = new Map<string, OpenEffect>();
  /** The messages that models see; null where spans exclude content. */
  readonly #transcript: Transcript | null;

  /** @param content whether spans include content. */
  constructor(content: boolean) {
    this.#transcript = content ? new Transcript() : null;
  }

  /** The effect with this id, or undefined. */
  get(id: string): OpenEffect | undefined {
    return this.#open.get(id);
  }

  /** Takes the next event. Of a compaction, remembers the messages before its start: its model sees these. */
  push(event: SessionEvent, atMs: number): void {
    if (!this.#transcript) return;
    if (event.type === 'compaction_started' && event.strategy !== 'clear_tool_results')
      this.#open.set(event.effect_id, { atMs, shown: shownToCompact(this.#transcript, event) });
    this.#transcript.push(event);
  }

  /** Takes the ids of the effects that are open after a record: adds new ones, and drops those that have ended. */
  keep(ids: readonly string[], atMs: number): void {
    const waited = new Set(ids);
    for (const id of this.#open.keys()) if (!waited.has(id)) this.#open.delete(id);
    for (const id of ids) if (!this.#open.has(id)) this.#open.set(id, { atMs, shown: this.#shownNow() });
  }

  #shownNow(): Shown | null {
    if (!this.#transcript) return null;
    const messages = this.#transcript.viewLater();
    const system = this.#transcript.frame.persona?.system_prompt ?? '';
    return () => ({ system, messages: messages() });
  }
}

function shownToCompact(transcript: Transcript, { strategy, kept_turns }: EventOf<'compaction_started'>): Shown {
  const { summary, messages } = transcript.older(kept_turns);
  const older = summary === null ? messages : [userText(summary), ...messages];
  return () => ({ system: compactionInstructions(strategy), messages: older });
}
