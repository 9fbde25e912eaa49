/**
 * The messages that one model request shows: the view (the messages of the transcript), reduced by the persona's
 * setting `transform_context`. If hooks of the point `transform_context` returned a list, their newest list replaces
 * the reduced view. Only the request changes, not the view.
 */
import {
  type AssistantMessage,
  cutText,
  type Message,
  type ToolMessage,
  type TransformContext,
} from '@coxswain/protocol';

/** A view at one moment. Its lists only grow (any other change makes new lists), so lengths are enough to describe it. */
export interface ShownView {
  readonly messages: readonly Message[];
  readonly length: number;
  /** Positions in `messages`: the end of the messages that replaced older turns, or 0; then the ends of the turns. */
  readonly turnEnds: readonly number[];
  /** The length of `turnEnds` at that moment. */
  readonly turns: number;
  /** Whether the view begins with the summary or notes of a compaction. */
  readonly summarized: boolean;
  /** Messages that are shown even if their turns are left out: pinned ones (`pinOf`, libs/turn), and the prompt. */
  readonly always: ReadonlySet<Message>;
  /** The persona's setting at that moment. A fork can change the persona before the request. */
  readonly settings: TransformContext | undefined;
}

/** The messages of a request. @param replaced the list of the hooks: indexes into the reduced view, or messages. */
export function shapeView(view: ShownView, replaced: readonly (number | Message)[] | null): readonly Message[] {
  const shaped = view.settings ? shapedBy(view.settings, view) : view.messages.slice(0, view.length);
  if (!replaced) return shaped;
  return replaced.flatMap((kept) => (typeof kept === 'number' ? (shaped[kept] ?? []) : kept));
}

function shapedBy(settings: TransformContext, view: ShownView): readonly Message[] {
  let messages =
    settings.last_n_turns === undefined ? view.messages.slice(0, view.length) : newest(view, settings.last_n_turns);
  const { max_tool_result_chars: chars } = settings;
  if (chars !== undefined)
    messages = messages.map((message) => (message.role === 'tool' ? shortened(message, chars) : message));
  return settings.drop_reasoning ? withoutReasoning(messages) : messages;
}

function newest(view: ShownView, turns: number): readonly Message[] {
  const at = view.turns - 1 - turns;
  const cut = at < 0 ? 0 : (view.turnEnds[at] as number);
  const shown: Message[] = [];
  for (let i = 0; i < view.length; i++) {
    const message = view.messages[i] as Message;
    if (i >= cut || (i === 0 && view.summarized) || view.always.has(message)) shown.push(message);
  }
  return shown;
}

function shortened(message: ToolMessage, chars: number): ToolMessage {
  const total = message.content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
  if (total <= chars) return message;
  let left = chars;
  const content: ToolMessage['content'] = [];
  for (const part of message.content) {
    const text = part.type === 'text' ? cutText(part.text, left) : '';
    if (part.type !== 'text') content.push(part);
    else if (text !== '') content.push({ ...part, text });
    left -= text.length;
  }
  content.push({ type: 'text', text: `[… ${total - chars} more characters omitted]` });
  return { ...message, content };
}

// The reasoning since the newest user message belongs to the work in progress. Some providers refuse a request whose
// calls, or whose newest answer, lack their reasoning.
function withoutReasoning(messages: readonly Message[]): readonly Message[] {
  const asked = messages.findLastIndex((message) => message.role === 'user');
  const answered = messages.findLastIndex((message) => message.role === 'assistant');
  const end = Math.min(asked, answered);
  return messages.flatMap((message, index) => {
    if (message.role !== 'assistant' || index >= end) return message;
    const content = message.content.filter((part) => part.type !== 'reasoning');
    if (content.length === message.content.length) return message;
    return content.length === 0 ? [] : { ...message, content: content.map(unsigned) };
  });
}

// Without the provider's metadata: its id of a part refers to the reasoning before the part, which is dropped.
function unsigned(part: AssistantMessage['content'][number]): AssistantMessage['content'][number] {
  const { provider_metadata: _, ...rest } = part;
  return rest;
}
