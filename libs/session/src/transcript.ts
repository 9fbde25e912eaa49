/**
 * The transcript: the messages of a session as models are shown them, built from events alone. Append-only; a call is
 * never parted from its result, and what was injected into an open batch follows the batch's results. That a reminder has
 * expired is one more entry, so that what was shown before can still be told.
 */
import {
  callsOf,
  type EventOf,
  type Message,
  type SessionEvent,
  type ToolDefinition,
  type ToolMessage,
  type ToolResult,
} from '@coxswain/protocol';

/** A run's surroundings as its last `persona_changed` and `tools_changed` say. */
export interface TranscriptFrame {
  readonly persona: EventOf<'persona_changed'>['provision'] | null;
  readonly tools: readonly ToolDefinition[];
}

interface OpenBatch {
  readonly order: readonly string[];
  readonly results: Map<string, ToolMessage>;
  readonly after: Entry[];
}

/** A message; a reminder with its id, so that it can expire; or the id of one that has. */
type Entry =
  | { readonly message: Message; readonly reminder?: string }
  | { readonly message?: undefined; readonly expired: string };

/** A session's transcript. Feed it every event, in order. */
export class Transcript {
  readonly #entries: Entry[] = [];
  #expired = 0;
  #batch: OpenBatch | null = null;
  #frame: TranscriptFrame = { persona: null, tools: [] };

  /** What a model request shows, oldest first, as it stood when there were `length` entries: a copy that later events do not change. */
  view(length = this.#entries.length): readonly Message[] {
    const messages: Message[] = [];
    const expired = this.#expired === 0 ? NONE : this.#expiredBefore(length);
    for (let i = 0; i < length; i++) {
      const entry = this.#entries[i] as Entry;
      if (entry.message && !(entry.reminder !== undefined && expired.has(entry.reminder))) messages.push(entry.message);
    }
    return messages;
  }

  /** How many entries stand in it: messages, and reminders' ends. */
  get length(): number {
    return this.#entries.length;
  }

  /** Persona and tools of the run. */
  get frame(): TranscriptFrame {
    return this.#frame;
  }

  /** Takes one event in. */
  push(event: SessionEvent): void {
    switch (event.type) {
      case 'prompt_received':
        for (const message of event.messages) this.#add({ message });
        break;
      case 'persona_changed':
        this.#frame = { ...this.#frame, persona: event.provision };
        break;
      case 'tools_changed':
        this.#frame = { ...this.#frame, tools: event.tools };
        break;
      case 'message_complete':
        this.#answer(event);
        break;
      case 'call_ended':
        this.#result(event);
        break;
      case 'message_injected':
        if (!event.audit_only) this.#add({ message: event.message });
        break;
      case 'reminder_fired':
        if (!event.audit_only) this.#add({ message: event.message, reminder: event.command_id });
        break;
      case 'reminder_inherited':
        this.#add({ message: inherited(event), reminder: event.command_id });
        break;
      case 'reminder_deduped':
      case 'reminder_expired':
        this.#expired++;
        this.#add({ expired: event.command_id });
        break;
      default:
        break;
    }
  }

  #answer({ message }: EventOf<'message_complete'>): void {
    if (message.content.length > 0) this.#entries.push({ message });
    const calls = message.partial ? [] : callsOf(message);
    if (calls.length > 0) this.#batch = { order: calls.map((call) => call.call_id), results: new Map(), after: [] };
  }

  #result(event: EventOf<'call_ended'>): void {
    const batch = this.#batch;
    if (!batch) return;
    batch.results.set(event.call_id, toolMessage(event));
    if (batch.results.size < batch.order.length) return;
    for (const callId of batch.order) {
      this.#entries.push({ message: batch.results.get(callId) as ToolMessage });
    }
    this.#entries.push(...batch.after);
    this.#batch = null;
  }

  #add(entry: Entry): void {
    if (this.#batch) this.#batch.after.push(entry);
    else this.#entries.push(entry);
  }

  #expiredBefore(length: number): ReadonlySet<string> {
    const expired = new Set<string>();
    for (let i = 0; i < length; i++) {
      const entry = this.#entries[i] as Entry;
      if (!entry.message) expired.add(entry.expired);
    }
    return expired;
  }
}

const NONE: ReadonlySet<string> = new Set();

function inherited({ body, role_hint }: EventOf<'reminder_inherited'>): Message {
  return { role: 'reminder', content: [{ type: 'text', text: body }], role_hint };
}

function toolMessage(event: EventOf<'call_ended'>): ToolMessage {
  const { call_id, tool, status, is_error, result } = event;
  return { role: 'tool', call_id, tool, status, is_error, content: contentOf(result) };
}

// Providers refuse an empty result.
function contentOf(result: ToolResult): ToolMessage['content'] {
  return result.content.length > 0
    ? result.content
    : [{ type: 'text', text: result.is_error ? '(no message)' : '(no output)' }];
}
