/**
 * Converts a session's journal to the messages of an AG-UI thread. Each message has the id that it had in the event
 * stream.
 */
import type { Message, ToolCall } from '@ag-ui/core';
import { type CallPart, callsOf, cutText, type JournalRecord, type ToolResult, textOf } from '@coxswain/protocol';
import { GATEWAY_BOUNDS } from '../context/mod.ts';
import { removeContext } from './run-input.ts';
import { answerId, commandOfMessage, firstCommandOf, resultId, userMessageId } from './thread-ids.ts';

const TEXT_MAX_CHARS = 64 * 1024;

/** Collects the messages of records, which must be added in order. */
export class SessionMessages {
  readonly #sessionId: string;
  /** Maps a command id to the client's message id. */
  readonly #messageOf: (commandId: string) => string;
  readonly #kept: { readonly message: Message; readonly chars: number }[] = [];
  #chars = 0;

  constructor(sessionId: string, messageOf: (commandId: string) => string) {
    this.#sessionId = sessionId;
    this.#messageOf = messageOf;
  }

  /** The messages, oldest first. Of a long history, only the newest are kept; the newest one is kept at any size. */
  get all(): readonly Message[] {
    return this.#kept.map(({ message }) => message);
  }

  add({ events, input }: JournalRecord): void {
    for (const event of events) {
      if (event.type === 'prompt_received')
        this.#addUserMessage(event.command_id, event.messages.map(textOf).join('\n'));
      else if (event.type === 'message_injected' && event.message.role === 'user' && !event.audit_only)
        this.#addUserMessage(event.command_id, textOf(event.message));
      else if (event.type === 'message_complete') {
        const effect = 'effect_id' in input ? input.effect_id : `turn-${event.turn}`;
        const calls = callsOf(event.message).map(toToolCall);
        this.#push({
          id: answerId(this.#sessionId, effect),
          role: 'assistant',
          content: cut(textOf(event.message)),
          ...(calls.length > 0 ? { toolCalls: calls } : {}),
        });
      } else if (event.type === 'call_ended')
        this.#push({
          id: resultId(this.#sessionId, event.call_id),
          role: 'tool',
          toolCallId: event.call_id,
          content: resultText(event.result),
        });
    }
  }

  #addUserMessage(commandId: string, text: string): void {
    this.#push({ id: this.#messageOf(commandId), role: 'user', content: cut(removeContext(text)) });
  }

  #push(message: Message): void {
    const { aguiSnapshotMessagesMax, aguiSnapshotMaxChars } = GATEWAY_BOUNDS;
    const chars = JSON.stringify(message).length;
    this.#kept.push({ message, chars });
    this.#chars += chars;
    while (this.#kept.length > 1 && (this.#kept.length > aguiSnapshotMessagesMax || this.#chars > aguiSnapshotMaxChars))
      this.#chars -= this.#kept.shift()?.chars ?? 0;
  }
}

/**
 * Maps a command id to the client's own message id, or to an id derived from the command.
 * @param known ids of the client's messages.
 */
export function createMessageIds(sessionId: string, known: ReadonlySet<string>): (commandId: string) => string {
  const own = new Map([...known].map((id) => [commandOfMessage(sessionId, id), id]));
  return (commandId) => own.get(firstCommandOf(commandId)) ?? userMessageId(sessionId, commandId);
}

/** A call in the form of AG-UI, where arguments are a JSON text. */
function toToolCall({ call_id, tool, args }: CallPart): ToolCall {
  return { id: call_id, type: 'function', function: { name: tool, arguments: JSON.stringify(args) } };
}

/** The text of a result, cut after 65,536 characters. */
export function resultText({ content }: ToolResult): string {
  return cut(content.map((part) => (part.type === 'text' ? part.text : `(a file: ${part.media_type})`)).join('\n'));
}

function cut(text: string): string {
  return text.length <= TEXT_MAX_CHARS ? text : `${cutText(text, TEXT_MAX_CHARS)}… (cut)`;
}
