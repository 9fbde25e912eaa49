/** A session's journal as the messages of an AG-UI thread, under the ids that they had as they streamed. */
import type { Message, ToolCall } from '@ag-ui/core';
import { type CallPart, callsOf, cutText, type JournalRecord, type ToolResult, textOf } from '@coxswain/protocol';
import { withoutContext } from './run-input.ts';
import { answerId, resultId, saidId } from './thread-ids.ts';

/** The newest messages that are kept, and the characters of one. */
const MESSAGES_MAX = 500;
const TEXT_MAX_CHARS = 64 * 1024;

/** Takes records in order. */
export class SessionMessages {
  readonly #sessionId: string;
  /** The message by which the client knows what a command brought. */
  readonly #messageOf: (commandId: string) => string;
  #messages: Message[] = [];

  constructor(sessionId: string, messageOf: (commandId: string) => string) {
    this.#sessionId = sessionId;
    this.#messageOf = messageOf;
  }

  /** All of them, the oldest first; of very many the newest. */
  get all(): readonly Message[] {
    return this.#messages;
  }

  add({ events, input }: JournalRecord): void {
    for (const event of events) {
      if (event.type === 'prompt_received') this.#said(event.command_id, event.messages.map(textOf).join('\n'));
      else if (event.type === 'message_injected' && event.message.role === 'user' && !event.audit_only)
        this.#said(event.command_id, textOf(event.message));
      else if (event.type === 'message_complete') {
        const effect = 'effect_id' in input ? input.effect_id : `turn-${event.turn}`;
        const calls = callsOf(event.message).map(asToolCall);
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

  #said(commandId: string, text: string): void {
    this.#push({ id: this.#messageOf(commandId), role: 'user', content: cut(withoutContext(text)) });
  }

  #push(message: Message): void {
    this.#messages.push(message);
    if (this.#messages.length >= MESSAGES_MAX * 2) this.#messages = this.#messages.slice(-MESSAGES_MAX);
  }
}

/** By which message a client knows a command: its own, or one that is made of the command. */
export function messageIds(sessionId: string, own: ReadonlyMap<string, string>): (commandId: string) => string {
  return (commandId) => own.get(commandId) ?? saidId(sessionId, commandId);
}

/** A call as AG-UI has it: its arguments are a text. */
function asToolCall({ call_id, tool, args }: CallPart): ToolCall {
  return { id: call_id, type: 'function', function: { name: tool, arguments: JSON.stringify(args) } };
}

/** A result's text, within its bound. */
export function resultText({ content }: ToolResult): string {
  return cut(content.map((part) => (part.type === 'text' ? part.text : `(a file: ${part.media_type})`)).join('\n'));
}

function cut(text: string): string {
  return text.length <= TEXT_MAX_CHARS ? text : `${cutText(text, TEXT_MAX_CHARS)}… (cut)`;
}
