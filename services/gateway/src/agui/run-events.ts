import { type Event, EventType } from '@ag-ui/core';
import {
  createEventTranslator,
  type EventTranslator,
  type UiEvent,
  type UiEventOf,
  uiEventToWire,
} from '@coxswain/client';
import { callsOf, type Delta, type JournalRecord } from '@coxswain/protocol';
import { withoutContext } from './run-input.ts';
import { resultText } from './session-messages.ts';
import { answerId, resultId } from './thread-ids.ts';

/** Told by other events, or with the state. */
const NOT_CUSTOM: ReadonlySet<UiEvent['type']> = new Set([
  'state_changed',
  'run_started',
  'run_ended',
  'call_started',
  'answer_ended',
]);

/**
 * Translates the events of a session into the events of one AG-UI run. Text comes from the event translator of the client,
 * calls and their results from the journal.
 * E1 Every open message, reasoning and step is closed before the run's end.
 * E2 A text has the message id of its effect, so that a later snapshot has it under the same id.
 */
export class RunEvents {
  readonly #sessionId: string;
  readonly #messageOf: (commandId: string) => string;
  /** Messages that the client has itself. */
  readonly #known: ReadonlySet<string>;
  #translator: EventTranslator = createEventTranslator();
  /** The answer that streams. */
  #streaming: string | null = null;
  #text: string | null = null;
  #reasoning: string | null = null;
  #step: string | null = null;
  /** Sessions below, of which this run has told that they work. */
  readonly #children = new Set<string>();
  /** Texts of one effect that began again. */
  readonly #restarts = new Map<string, number>();

  constructor(sessionId: string, messageOf: (commandId: string) => string, known: ReadonlySet<string>) {
    this.#sessionId = sessionId;
    this.#messageOf = messageOf;
    this.#known = known;
  }

  /** The client has a snapshot of everything up to this record. */
  startAfter(n: number): void {
    this.#translator = createEventTranslator({ after: n });
  }

  /** What the client is sent for a delta. */
  ofDelta(delta: Delta): Event[] {
    if (delta.kind !== 'progress') this.#streaming = delta.effect_id;
    return this.#shown(this.#translator.delta(delta), delta.effect_id, null);
  }

  /** What the client is sent for a record. */
  ofRecord(record: JournalRecord): Event[] {
    const effect = 'effect_id' in record.input ? record.input.effect_id : `n${record.n}`;
    const shown = this.#translator.record(record);
    // What has streamed ahead of the record that asked for it comes behind that: it is the next answer's.
    const at = shown.findIndex(({ type }) => type === 'state_changed');
    return [
      ...this.#shown(shown.slice(0, at), effect, record),
      ...this.#callsIn(record, effect),
      ...this.#shown(shown.slice(at), this.#streaming ?? effect, record),
    ];
  }

  /** Closes what is open. Sessions below that work on are paused as far as this run tells. */
  close(): Event[] {
    const paused = [...this.#children].map(
      (subagentRunId): Event => ({ type: EventType.SUBAGENT_FINISHED, subagentRunId, outcome: { type: 'suspended' } }),
    );
    this.#children.clear();
    return [...this.#endTexts(), ...paused, ...this.#endStep()];
  }

  /** A session below is a subagent, whose run is its id. */
  #startChild({
    session,
    persona,
    callId,
  }: Pick<UiEventOf<'child_started'>, 'session' | 'persona' | 'callId'>): Event[] {
    if (this.#children.has(session)) return [];
    this.#children.add(session);
    return [{ type: EventType.SUBAGENT_STARTED, subagentRunId: session, name: persona, parentToolCallId: callId }];
  }

  #endChild(event: UiEventOf<'child_ended'>): Event[] {
    const { session, callId, stopReason, turns } = event;
    const { usage } = uiEventToWire(event);
    // One that an earlier run of this thread has told of begins here anew: what its persona was, that run has said.
    const begun = this.#startChild({ session, persona: session, callId });
    this.#children.delete(session);
    const told = { subagentRunId: session, metadata: { turns, usage } };
    const ended: Event =
      stopReason === 'error'
        ? { type: EventType.SUBAGENT_ERROR, ...told, message: `the session ${session} has failed`, code: stopReason }
        : {
            type: EventType.SUBAGENT_FINISHED,
            ...told,
            result: { stop_reason: stopReason },
            outcome: { type: 'success' },
          };
    return [...begun, ended];
  }

  #shown(events: readonly UiEvent[], effect: string, record: JournalRecord | null): Event[] {
    return events.flatMap((event) => this.#one(event, effect, record));
  }

  #one(event: UiEvent, effect: string, record: JournalRecord | null): Event[] {
    switch (event.type) {
      case 'text_appended': {
        const messageId = this.#idOf(effect);
        const begun = this.#text === messageId ? [] : [...this.#endTexts(), textStart(messageId, 'assistant')];
        this.#text = messageId;
        return [...begun, { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: event.text }];
      }
      case 'reasoning_appended': {
        const messageId = `${this.#idOf(effect)}:reasoning`;
        const begun: Event[] =
          this.#reasoning === messageId
            ? []
            : [
                ...this.#endTexts(),
                { type: EventType.REASONING_START, messageId },
                { type: EventType.REASONING_MESSAGE_START, messageId, role: 'reasoning' },
              ];
        this.#reasoning = messageId;
        return [...begun, { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta: event.text }];
      }
      case 'answer_restarted': {
        const ended = this.#endTexts();
        this.#restarts.set(effect, (this.#restarts.get(effect) ?? 0) + 1);
        return [...ended, custom(event)];
      }
      case 'turn_started': {
        const ended = [...this.#endTexts(), ...this.#endStep()];
        this.#step = `turn ${event.turn}`;
        return [...ended, { type: EventType.STEP_STARTED, stepName: this.#step }];
      }
      case 'prompt_shown': {
        const command = record?.input.type === 'command' ? record.input.command_id : null;
        return command === null ? [] : this.#said(command, event.text);
      }
      case 'seam_delivered': {
        const said = event.injections.filter(({ origin }) => origin === 'steer' || origin === 'followup');
        return [...said.flatMap(({ commandId, text }) => this.#said(commandId, text)), custom(event)];
      }
      case 'child_started':
        return [...this.#startChild(event), custom(event)];
      case 'child_ended':
        return [...this.#endChild(event), custom(event)];
      default:
        return NOT_CUSTOM.has(event.type) ? [] : [custom(event)];
    }
  }

  /** What the model has asked for, and what came of it. */
  #callsIn({ events }: JournalRecord, effect: string): Event[] {
    return events.flatMap((event): Event[] => {
      if (event.type === 'message_complete') {
        const parentMessageId = this.#idOf(effect);
        const calls = callsOf(event.message).flatMap(({ call_id: toolCallId, tool, args }): Event[] => [
          { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: tool, parentMessageId },
          { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: JSON.stringify(args) },
          { type: EventType.TOOL_CALL_END, toolCallId },
        ]);
        return [...this.#endTexts(), ...calls];
      }
      if (event.type !== 'call_ended') return [];
      const { call_id, status, is_error, duration_ms, result } = event;
      return [
        {
          type: EventType.TOOL_CALL_RESULT,
          messageId: resultId(this.#sessionId, call_id),
          toolCallId: call_id,
          content: resultText(result),
          role: 'tool',
          metadata: { status, is_error, duration_ms },
        },
      ];
    });
  }

  /** What somebody else has said; what the client has said itself it has. */
  #said(commandId: string, text: string): Event[] {
    const messageId = this.#messageOf(commandId);
    if (this.#known.has(messageId)) return [];
    return [
      ...this.#endTexts(),
      textStart(messageId, 'user'),
      { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: withoutContext(text) },
      { type: EventType.TEXT_MESSAGE_END, messageId },
    ];
  }

  #idOf(effect: string): string {
    const again = this.#restarts.get(effect);
    return `${answerId(this.#sessionId, effect)}${again === undefined ? '' : `:again-${again}`}`;
  }

  #endTexts(): Event[] {
    const ended: Event[] = [];
    if (this.#text !== null) ended.push({ type: EventType.TEXT_MESSAGE_END, messageId: this.#text });
    if (this.#reasoning !== null) {
      ended.push({ type: EventType.REASONING_MESSAGE_END, messageId: this.#reasoning });
      ended.push({ type: EventType.REASONING_END, messageId: this.#reasoning });
    }
    this.#text = this.#reasoning = null;
    return ended;
  }

  #endStep(): Event[] {
    const ended: Event[] = this.#step === null ? [] : [{ type: EventType.STEP_FINISHED, stepName: this.#step }];
    this.#step = null;
    return ended;
  }
}

function textStart(messageId: string, role: 'user' | 'assistant'): Event {
  return { type: EventType.TEXT_MESSAGE_START, messageId, role };
}

/** What is ours alone: under its name, as the console is told it. */
function custom(event: UiEvent): Event {
  const { type, ...value } = uiEventToWire(event);
  return { type: EventType.CUSTOM, name: `coxswain.${type}`, value };
}
