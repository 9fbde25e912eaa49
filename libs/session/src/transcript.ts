/**
 * The transcript: the messages of a session as models are shown them, built from events alone. Append-only; a call is
 * never parted from its result, and what was injected into an open batch follows the batch's results.
 */
import {
  BlobRef,
  callsOf,
  type EventOf,
  type Message,
  type SessionEvent,
  type ToolDefinition,
  type ToolMessage,
  type ToolResult,
} from '@coxswain/protocol';
import { isStored } from './shown-files.ts';

/** A run's surroundings as its last `persona_changed` and `tools_changed` say. */
export interface TranscriptFrame {
  readonly persona: EventOf<'persona_changed'>['provision'] | null;
  readonly tools: readonly ToolDefinition[];
}

interface OpenBatch {
  readonly order: readonly string[];
  readonly results: Map<string, ToolMessage>;
  readonly after: Message[];
}

/** A session's transcript. Feed it every event, in order. */
export class Transcript {
  readonly #messages: Message[] = [];
  #batch: OpenBatch | null = null;
  readonly #wholes = new Set<string>();
  #storedFiles = false;
  #frame: TranscriptFrame = { persona: null, tools: [] };

  /** What a model request shows, oldest first, as it stood when there were `length` messages: a copy that later events do not change. */
  view(length = this.#messages.length): readonly Message[] {
    return this.#messages.slice(0, length);
  }

  /** How many messages stand in it. */
  get length(): number {
    return this.#messages.length;
  }

  /** Persona and tools of the run. */
  get frame(): TranscriptFrame {
    return this.#frame;
  }

  /** Whether a result that stands here was cut, and its whole is kept under this hash. */
  hasWhole(sha256: string): boolean {
    return this.#wholes.has(sha256);
  }

  /** Whether a file of some result lies in the object store. */
  get hasStoredFiles(): boolean {
    return this.#storedFiles;
  }

  /** Takes one event in. */
  push(event: SessionEvent): void {
    switch (event.type) {
      case 'prompt_received':
        for (const message of event.messages) this.#add(message);
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
        if (!event.audit_only) this.#add(event.message);
        break;
      default:
        break;
    }
  }

  #answer({ message }: EventOf<'message_complete'>): void {
    if (message.content.length > 0) this.#messages.push(message);
    const calls = message.partial ? [] : callsOf(message);
    if (calls.length > 0) this.#batch = { order: calls.map((call) => call.call_id), results: new Map(), after: [] };
  }

  #result(event: EventOf<'call_ended'>): void {
    const whole = BlobRef.safeParse(event.result.detail?.whole);
    if (whole.success) this.#wholes.add(whole.data.sha256);
    this.#storedFiles ||= event.result.content.some(isStored);
    const batch = this.#batch;
    if (!batch) return;
    batch.results.set(event.call_id, toolMessage(event));
    if (batch.results.size < batch.order.length) return;
    for (const callId of batch.order) this.#messages.push(batch.results.get(callId) as ToolMessage);
    this.#messages.push(...batch.after);
    this.#batch = null;
  }

  #add(message: Message): void {
    if (this.#batch) this.#batch.after.push(message);
    else this.#messages.push(message);
  }
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
