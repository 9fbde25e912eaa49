/**
 * The transcript: the messages of a session as models see them, built from events alone. A call always stays together
 * with its result. Messages that were injected during a batch of calls follow the results of the batch. One request may
 * show fewer or other messages, by the persona's setting `transform_context` and the hooks of that point: `shapeView`
 * (shape-view.ts).
 *
 * Texts are unchanged, except that a mark follows a cut answer, and a placeholder stands for an empty result. Messages
 * of other sessions, notices, loaded skills and summaries name their origin. Adapters mark the text by origin when they
 * build a request (`prompt-marks.ts` of the protocol).
 *
 * Messages that exist change in two cases. A compaction replaces the messages of older turns by a summary, or their
 * results by stubs (COMPACTION-2, libs/turn, compaction.ts). The end of a reminder (`reminder_expired`,
 * `reminder_deduped`) removes it. The journal keeps what is removed here.
 */
import {
  type AssistantMessage,
  BlobRef,
  callsOf,
  cutText,
  type EventOf,
  type Json,
  LOAD_SKILL,
  type Message,
  type MessageOrigin,
  type MessageSource,
  quoteHostTags,
  type ReminderMessage,
  type SessionEvent,
  type ShownUserMessage,
  type ToolDefinition,
  type ToolMessage,
  type ToolResult,
  type UserMessage,
  userText,
} from '@coxswain/protocol';
import { isClearable, nameOf, pinOf, reasonSuffix } from '@coxswain/turn';
import { Interned } from './interned.ts';
import { type ShownView, shapeView } from './shape-view.ts';
import { editedNote, isStored } from './shown-files.ts';

/** Persona and tools of a run, as its last `persona_changed` and `tools_changed` events say. */
export interface TranscriptFrame {
  readonly persona: PinnedPersona | null;
  readonly tools: readonly ToolDefinition[];
}

/** A persona as its run has pinned it. */
export type PinnedPersona = EventOf<'persona_changed'>['provision'];

/** The messages before the turns that a compaction keeps. Pinned messages are among them. */
export interface OlderMessages {
  /** The summary or notes of the previous compaction. */
  readonly summary: string | null;
  /** The messages after the summary, up to the turns that are kept. */
  readonly messages: readonly Message[];
}

interface OpenBatch {
  readonly order: readonly string[];
  /** Notes on calls whose arguments a person edited. */
  readonly edited: Map<string, string>;
  readonly results: Map<string, ToolMessage>;
  readonly after: Message[];
}

const NONE: ReadonlySet<Message> = new Set();

const personas = new Interned<PinnedPersona>();
const toolsets = new Interned<readonly ToolDefinition[]>();

/** A session's transcript. Push every event, in order. */
export class Transcript {
  /** Append-only between two replacements, so a length is enough to remember an earlier view. */
  #messages: Message[] = [];
  /** Positions at which turns end, in messages. The first is the end of what replaced the older turns; 0 at first. */
  #turnEnds: number[] = [0];
  /** The summary or notes at the start of the messages. */
  #summary: string | null = null;
  /** Messages that no compaction replaces, and how long that holds. */
  readonly #pins = new Map<Message, 'run' | 'session'>();
  /** Shown reminders, by the id of their command. */
  readonly #reminders = new Map<string, ReminderMessage>();
  /** Origins of queued messages from other sessions, by the id of their command. */
  readonly #senders = new Map<string, MessageOrigin>();
  /** The messages that started the run. */
  #prompt: readonly ShownUserMessage[] = [];
  #batch: OpenBatch | null = null;
  #wholes: Set<string> | null = null;
  #storedFiles = false;
  #frame: TranscriptFrame = { persona: null, tools: [] };
  /**
   * Personas that handed the session over, with their tools, as pinned then. Bounded by the number of personas that name
   * one another.
   */
  readonly #earlier = new Map<string, TranscriptFrame & { readonly persona: PinnedPersona }>();
  #answers = 0;
  #lastAnswer: AssistantMessage | null = null;
  /** Who cancelled the run, and why. */
  #cancelled: string | null = null;
  /** The view that `transform_context` hooks are asked about, for the next request. */
  #asked: ShownView | null = null;
  /** The list that these hooks returned: indexes into that view, or messages. */
  #transformed: readonly (number | Message)[] | null = null;

  /** The messages that a request would show now. */
  view(): readonly Message[] {
    return this.viewLater()();
  }

  /** As {@link view}, but built on demand: later events do not change the result. */
  viewLater(): () => readonly Message[] {
    const transformed = this.#transformed;
    // The end of a reminder may have moved the messages since.
    const view = (transformed && this.#asked) ?? this.#newest();
    return () => shapeView(view, transformed);
  }

  /**
   * The messages that `transform_context` hooks are asked about: the view at their first `hook_call`. Reminders that
   * ended since stay in it, so that the indexes in the answers remain valid.
   */
  viewAsked(): readonly Message[] {
    return shapeView(this.#asked ?? this.#newest(), null);
  }

  #newest(): ShownView {
    const settings = this.#frame.persona?.definition.transform_context;
    const leavesOut = settings?.last_n_turns !== undefined;
    return {
      messages: this.#messages,
      length: this.#messages.length,
      turnEnds: this.#turnEnds,
      turns: this.#turnEnds.length,
      summarized: this.#summary !== null,
      always: leavesOut ? new Set<Message>([...this.#pins.keys(), ...this.#prompt]) : NONE,
      settings,
    };
  }

  /** Number of messages. Those that wait for the end of a batch of calls do not count. */
  get length(): number {
    return this.#messages.length;
  }

  /** Persona and tools of the run. */
  get frame(): TranscriptFrame {
    return this.#frame;
  }

  /** A persona that handed the session over, with its tools, as pinned then. */
  earlier(name: string): (TranscriptFrame & { readonly persona: PinnedPersona }) | undefined {
    return this.#earlier.get(name);
  }

  /** Whether a result of the session, in the view or not, was truncated, and its whole is stored under this SHA-256. */
  hasWhole(sha256: string): boolean {
    return this.#wholes?.has(sha256) ?? false;
  }

  /** Whether a result of the session, in the view or not, has a file in the object store. */
  get hasStoredFiles(): boolean {
    return this.#storedFiles;
  }

  /**
   * The model's answers in the whole session, also those that the view no longer shows. `count`: recorded answers with
   * content. `last`: the newest of them, or the answer to a later request that was refused as too long (`context_overflowed`),
   * which does not count.
   */
  get answered(): { readonly count: number; readonly last: AssistantMessage | null } {
    return { count: this.#answers, last: this.#lastAnswer };
  }

  /** The summary, and the messages after it that are before the newest `keptTurns` ended turns. */
  older(keptTurns: number): OlderMessages {
    const from = this.#summary === null ? 0 : 1;
    return { summary: this.#summary, messages: this.#messages.slice(from, this.#cut(keptTurns)) };
  }

  /** Applies one event. */
  push(event: SessionEvent): void {
    switch (event.type) {
      case 'prompt_received':
        this.#beginRun(event);
        break;
      case 'persona_changed':
        if (event.handoff && this.#frame.persona)
          this.#earlier.set(event.handoff.from, { ...this.#frame, persona: this.#frame.persona });
        this.#frame = { ...this.#frame, persona: personas.of(event.fingerprint, event.provision) };
        break;
      case 'tools_changed':
        this.#frame = { ...this.#frame, tools: toolsets.of(event.fingerprint, event.tools) };
        break;
      case 'control_outcome':
        if (event.control === 'cancel' && event.status === 'cancelled')
          this.#cancelled = `${nameOf(event.actor)} cancelled the run${reasonSuffix(event.reason)}`;
        if (event.status === 'revoked') this.#senders.delete(event.target);
        break;
      case 'message_complete':
        this.#answer(event);
        break;
      case 'context_overflowed':
        if (event.message) this.#lastAnswer = event.message;
        this.#requestEnded();
        break;
      case 'approval_decided':
        if (event.args) this.#batch?.edited.set(event.call_id, editedNote(event));
        break;
      case 'call_ended':
        this.#result(event);
        break;
      case 'steering_received':
      case 'followup_received':
        if (event.from) this.#senders.set(event.command_id, originOf(event.from));
        break;
      case 'injection_collapsed':
      case 'injection_blocked':
        this.#senders.delete(event.command_id);
        break;
      case 'message_injected':
        this.#deliver(event);
        break;
      case 'reminder_fired':
        if (event.audit_only) break;
        this.#reminders.set(event.command_id, event.message);
        this.#inject(event, event.message);
        break;
      case 'reminder_inherited':
        this.#inherit(event);
        break;
      case 'reminder_deduped':
      case 'reminder_expired':
        this.#forget(event.command_id);
        break;
      case 'turn_end':
        this.#turnEnds.push(this.#messages.length);
        this.#requestEnded();
        break;
      case 'compaction_done':
        this.#compact(event);
        break;
      case 'hook_call':
        if (event.point === 'transform_context') this.#asked ??= this.#newest();
        break;
      case 'hook_returned':
        if (event.verdict?.kind === 'replace_messages') this.#transformed = event.verdict.messages;
        break;
      default:
        break;
    }
  }

  // The prompt of a message from another session names that session as its origin (`from`). A child's first prompt is
  // its task and names none: the parent session acts as the child's user.
  #beginRun({ command_id, messages, from }: EventOf<'prompt_received'>): void {
    this.#cancelled = null;
    for (const [message, how] of this.#pins) if (how === 'run') this.#pins.delete(message);
    this.#senders.delete(command_id);
    this.#prompt = from ? messages.map((message) => withOrigin(message, originOf(from))) : messages;
    for (const message of this.#prompt) this.#add(message);
  }

  #deliver(event: EventOf<'message_injected'>): void {
    const sender = this.#senders.get(event.command_id);
    this.#senders.delete(event.command_id);
    if (event.audit_only) return;
    const origin: MessageOrigin | undefined = event.origin === 'feedback' ? { kind: 'notice' } : sender;
    const { message } = event;
    this.#inject(event, message.role === 'user' && origin ? withOrigin(message, origin) : message);
  }

  #inject(
    event: EventOf<'message_injected'> | EventOf<'reminder_fired'>,
    message: ShownUserMessage | ReminderMessage,
  ): void {
    const pin = pinOf(event);
    if (pin) this.#pins.set(message, pin);
    this.#add(message);
  }

  #inherit({ command_id, body, role_hint, preserve_on_compact }: EventOf<'reminder_inherited'>): void {
    const message: ReminderMessage = { role: 'reminder', content: [{ type: 'text', text: body }], role_hint };
    if (preserve_on_compact) this.#pins.set(message, 'session');
    this.#reminders.set(command_id, message);
    this.#add(message);
  }

  // A request in progress keeps the list it has, as with a compaction.
  #forget(commandId: string): void {
    const message = this.#reminders.get(commandId);
    if (!message) return;
    this.#reminders.delete(commandId);
    this.#pins.delete(message);
    const waits = this.#batch?.after.indexOf(message) ?? -1;
    if (waits >= 0) this.#batch?.after.splice(waits, 1);
    const at = this.#messages.lastIndexOf(message);
    if (at < 0) return;
    this.#messages = [...this.#messages.slice(0, at), ...this.#messages.slice(at + 1)];
    this.#turnEnds = this.#turnEnds.map((end) => (end > at ? end - 1 : end));
  }

  #requestEnded(): void {
    this.#asked = null;
    this.#transformed = null;
  }

  #answer({ message }: EventOf<'message_complete'>): void {
    this.#requestEnded();
    if (message.content.length > 0) {
      this.#messages.push(message.partial ? this.#marked(message) : message);
      this.#lastAnswer = message;
      this.#answers++;
    }
    const calls = message.partial ? [] : callsOf(message);
    if (calls.length > 0)
      this.#batch = { order: calls.map((call) => call.call_id), edited: new Map(), results: new Map(), after: [] };
  }

  /** A model reads its own text as complete, unless a mark in the text says that it was cut off. */
  #marked(message: AssistantMessage): AssistantMessage {
    const text = quoteHostTags(`\n[This response was cut off here${reasonSuffix(this.#cancelled)}. It is incomplete.]`);
    return { ...message, content: [...message.content, { type: 'text', text }] };
  }

  #result(event: EventOf<'call_ended'>): void {
    const whole = event.result.detail?.whole;
    const ref = whole === undefined ? null : BlobRef.safeParse(whole);
    if (ref?.success) {
      this.#wholes ??= new Set();
      this.#wholes.add(ref.data.sha256);
    }
    this.#storedFiles ||= event.result.content.some(isStored);
    const batch = this.#batch;
    if (!batch) return;
    const tool = this.#frame.tools.find(({ name }) => name === event.tool);
    batch.results.set(event.call_id, toolMessage(event, tool, batch.edited.get(event.call_id)));
    if (batch.results.size < batch.order.length) return;
    for (const callId of batch.order) this.#messages.push(batch.results.get(callId) as ToolMessage);
    this.#messages.push(...batch.after);
    this.#batch = null;
  }

  #add(message: ShownUserMessage | ReminderMessage): void {
    if (this.#batch) this.#batch.after.push(message);
    else this.#messages.push(message);
  }

  // ---- compaction ----

  #cut(keptTurns: number): number {
    return this.#turnEnds[Math.max(0, this.#turnEnds.length - 1 - keptTurns)] as number;
  }

  // A request in progress may still have to read its messages, so its list must not change.
  #compact(event: EventOf<'compaction_done'>): void {
    const cut = this.#cut(event.kept_turns);
    const before = this.#messages.slice(0, cut);
    const rest = this.#messages.slice(cut);
    let older: Message[];
    if (event.strategy === 'clear_tool_results') {
      older = cleared(before);
    } else {
      this.#summary = event.summary ?? '';
      older = [summaryMessage(event.strategy, this.#summary), ...before.filter((message) => this.#pins.has(message))];
    }
    const moved = older.length - cut;
    const kept = this.#turnEnds.slice(Math.max(0, this.#turnEnds.length - 1 - event.kept_turns));
    this.#turnEnds = kept.map((end) => end + moved);
    this.#messages = [...older, ...rest];
  }
}

/** The message that replaces the messages that a compaction summarises. */
export function summaryMessage(strategy: 'summary' | 'notes', text: string): ShownUserMessage {
  return withOrigin(userText(text), { kind: strategy });
}

function withOrigin(message: UserMessage, origin: MessageOrigin): ShownUserMessage {
  return { ...message, origin };
}

function originOf({ session }: MessageSource): MessageOrigin {
  return { kind: 'session', session };
}

const STUB_ARGS_CHARS = 120;

function cleared(messages: readonly Message[]): Message[] {
  const args = new Map<string, Json>();
  return messages.map((message) => {
    if (message.role === 'assistant') for (const call of callsOf(message)) args.set(call.call_id, call.args);
    return message.role === 'tool' && isClearable(message.content) ? stub(message, args.get(message.call_id)) : message;
  });
}

// The stub names the call, so that the model can repeat the call if it needs the result.
function stub(message: ToolMessage, args: Json | undefined): ToolMessage {
  let chars = 0;
  let files = 0;
  for (const part of message.content) {
    if (part.type === 'text') chars += part.text.length;
    else files++;
  }
  const shown = JSON.stringify(args ?? {});
  const short = shown.length > STUB_ARGS_CHARS ? `${cutText(shown, STUB_ARGS_CHARS)}…` : shown;
  const size = [chars > 0 && `${chars} characters`, files > 0 && `${files} file${files === 1 ? '' : 's'}`];
  const text = `[Cleared to save space: ${size.filter(Boolean).join(' and ')}, the result of ${message.tool} ${short}]`;
  const { note: _, ...rest } = message;
  return { ...rest, content: [{ type: 'text', text }] };
}

function toolMessage(
  event: EventOf<'call_ended'>,
  definition: ToolDefinition | undefined,
  note: string | undefined,
): ToolMessage {
  const { call_id, tool, status, is_error, result } = event;
  return {
    role: 'tool',
    call_id,
    tool,
    status,
    is_error,
    content: contentOf(result),
    ...(note === undefined ? {} : { note }),
    // A skill speaks for the persona's author. This does not apply to another tool of the same name.
    ...(definition?.name === LOAD_SKILL && definition.source === 'built_in' ? { origin: { kind: 'persona' } } : {}),
  };
}

// Providers refuse an empty result.
function contentOf(result: ToolResult): ToolMessage['content'] {
  return result.content.length > 0
    ? result.content
    : [{ type: 'text', text: result.is_error ? '(no message)' : '(no output)' }];
}
