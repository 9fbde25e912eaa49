import { type Event, EventType } from '@ag-ui/core';
import {
  createEventTranslator,
  type EventTranslator,
  type UiEvent,
  type UiEventOf,
  uiEventToWire,
} from '@coxswain/client';
import { callsOf, type Delta, type JournalRecord } from '@coxswain/protocol';
import { removeContext } from './run-input.ts';
import { resultText } from './session-messages.ts';
import { answerId, resultId } from './thread-ids.ts';

/** Types without a custom event: other AG-UI events or the shared state carry their content. */
const NOT_CUSTOM: ReadonlySet<UiEvent['type']> = new Set([
  'state_changed',
  'run_started',
  'run_ended',
  'call_started',
  'answer_ended',
]);

/**
 * Translates the events of a session into the events of one AG-UI run. Texts come from the event translator of the
 * client; calls and their results come from the journal.
 *
 * E1 Every open message, reasoning and step is closed before the run's end.
 * E2 A text has the message id of its effect, so that a later snapshot has it under the same id.
 */
export class RunEvents {
  readonly #sessionId: string;
  readonly #messageOf: (commandId: string) => string;
  /** Ids of messages that the client already has. */
  readonly #known: ReadonlySet<string>;
  #translator: EventTranslator = createEventTranslator();
  /** The effect of the streaming answer. */
  #streaming: string | null = null;
  #text: string | null = null;
  #reasoning: string | null = null;
  #step: string | null = null;
  /** Child sessions for which this run has sent `SUBAGENT_STARTED` and no end yet. */
  readonly #children = new Set<string>();
  /** Number of restarts of an answer, by effect. */
  readonly #restarts = new Map<string, number>();

  constructor(sessionId: string, messageOf: (commandId: string) => string, known: ReadonlySet<string>) {
    this.#sessionId = sessionId;
    this.#messageOf = messageOf;
    this.#known = known;
  }

  /** Skips records up to this one: the client has a snapshot of them. */
  startAfter(n: number): void {
    this.#translator = createEventTranslator({ after: n });
  }

  /** The AG-UI events for a delta. */
  translateDelta(delta: Delta): Event[] {
    if (delta.kind !== 'progress') this.#streaming = delta.effect_id;
    return this.#translateEvents(this.#translator.delta(delta), delta.effect_id, null);
  }

  /** The AG-UI events for a record. */
  translateRecord(record: JournalRecord): Event[] {
    const effect = 'effect_id' in record.input ? record.input.effect_id : `n${record.n}`;
    const shown = this.#translator.record(record);
    // Pieces of the next answer may arrive before the record that requested it. The translator returns them after
    // `state_changed`.
    const at = shown.findIndex(({ type }) => type === 'state_changed');
    return [
      ...this.#translateEvents(shown.slice(0, at), effect, record),
      ...this.#callsIn(record, effect),
      ...this.#translateEvents(shown.slice(at), this.#streaming ?? effect, record),
    ];
  }

  /** Closes open texts and the open step. Child sessions that still run are reported as suspended. */
  close(): Event[] {
    const paused = [...this.#children].map(
      (subagentRunId): Event => ({ type: EventType.SUBAGENT_FINISHED, subagentRunId, outcome: { type: 'suspended' } }),
    );
    this.#children.clear();
    return [...this.#endTexts(), ...paused, ...this.#endStep()];
  }

  /** Reports a child session as a subagent, with the session id as run id. */
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
    // A child that an earlier AG-UI run reported is started again in this run, with its session id as name: its persona
    // is not known here.
    const started = this.#startChild({ session, persona: session, callId });
    this.#children.delete(session);
    const common = { subagentRunId: session, metadata: { turns, usage } };
    const ended: Event =
      stopReason === 'error'
        ? { type: EventType.SUBAGENT_ERROR, ...common, message: `the session ${session} has failed`, code: stopReason }
        : {
            type: EventType.SUBAGENT_FINISHED,
            ...common,
            result: { stop_reason: stopReason },
            outcome: { type: 'success' },
          };
    return [...started, ended];
  }

  #translateEvents(events: readonly UiEvent[], effect: string, record: JournalRecord | null): Event[] {
    return events.flatMap((event) => this.#translateEvent(event, effect, record));
  }

  #translateEvent(event: UiEvent, effect: string, record: JournalRecord | null): Event[] {
    switch (event.type) {
      case 'text_appended': {
        const messageId = this.#answerIdOf(effect);
        const started = this.#text === messageId ? [] : [...this.#endTexts(), textStart(messageId, 'assistant')];
        this.#text = messageId;
        return [...started, { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: event.text }];
      }
      case 'reasoning_appended': {
        const messageId = `${this.#answerIdOf(effect)}:reasoning`;
        const started: Event[] =
          this.#reasoning === messageId
            ? []
            : [
                ...this.#endTexts(),
                { type: EventType.REASONING_START, messageId },
                { type: EventType.REASONING_MESSAGE_START, messageId, role: 'reasoning' },
              ];
        this.#reasoning = messageId;
        return [...started, { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta: event.text }];
      }
      case 'answer_restarted': {
        const ended = this.#endTexts();
        this.#restarts.set(effect, (this.#restarts.get(effect) ?? 0) + 1);
        return [...ended, toCustomEvent(event)];
      }
      case 'turn_started': {
        const ended = [...this.#endTexts(), ...this.#endStep()];
        this.#step = `turn ${event.turn}`;
        return [...ended, { type: EventType.STEP_STARTED, stepName: this.#step }];
      }
      case 'prompt_shown': {
        const command = record?.input.type === 'command' ? record.input.command_id : null;
        return command === null ? [] : this.#userMessage(command, event.text);
      }
      case 'seam_delivered': {
        const userMessages = event.injections.filter(({ origin }) => origin === 'steer' || origin === 'followup');
        return [
          ...userMessages.flatMap(({ commandId, text }) => this.#userMessage(commandId, text)),
          toCustomEvent(event),
        ];
      }
      case 'child_started':
        return [...this.#startChild(event), toCustomEvent(event)];
      case 'child_ended':
        return [...this.#endChild(event), toCustomEvent(event)];
      default:
        return NOT_CUSTOM.has(event.type) ? [] : [toCustomEvent(event)];
    }
  }

  /** The calls of a completed message, and the results of ended calls. */
  #callsIn({ events }: JournalRecord, effect: string): Event[] {
    return events.flatMap((event): Event[] => {
      if (event.type === 'message_complete') {
        const parentMessageId = this.#answerIdOf(effect);
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

  /** A message of another client. A message that the client already has is not sent again. */
  #userMessage(commandId: string, text: string): Event[] {
    const messageId = this.#messageOf(commandId);
    if (this.#known.has(messageId)) return [];
    return [
      ...this.#endTexts(),
      textStart(messageId, 'user'),
      { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: removeContext(text) },
      { type: EventType.TEXT_MESSAGE_END, messageId },
    ];
  }

  #answerIdOf(effect: string): string {
    const restarts = this.#restarts.get(effect);
    return `${answerId(this.#sessionId, effect)}${restarts === undefined ? '' : `:again-${restarts}`}`;
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

/** An event without an AG-UI equivalent: a custom event `coxswain.<type>` with its wire fields. */
function toCustomEvent(event: UiEvent): Event {
  const { type, ...value } = uiEventToWire(event);
  return { type: EventType.CUSTOM, name: `coxswain.${type}`, value };
}
