/**
 * A short form of a journal, turn by turn, for comparisons by people. `diffJournals` (diff-journals.ts) compares two of them.
 */
import {
  callsOf,
  canonicalJson,
  cutGraphemes,
  fingerprint,
  type HookAnswer,
  type JournalRecord,
  type SessionEvent,
  type ToolResult,
  textOf,
} from '@coxswain/protocol';

/** One item of a turn: an event, or one part of an answer. */
export interface SaidInTurn {
  readonly what: 'prompt' | 'message' | 'answer' | 'call' | 'verdict' | 'decision' | 'result' | 'persona' | 'outcome';
  /**
   * For a call, a decision and a result the id of the call. For a verdict the hook, its point, and the id of the call
   * if it concerns one. For a message its seam. Otherwise null.
   */
  readonly of: string | null;
  /** The text, cut to {@link SHORT_CHARS}. */
  readonly text: string;
  /**
   * Hash of the whole text, without names that always differ between sessions. For a persona: of its own fingerprint
   * and its system prompt.
   */
  readonly fingerprint: string;
}

/** One turn. Turn 0 stands for the run itself: what precedes its first turn, and its end. */
export interface TurnDigest {
  readonly run: number;
  readonly turn: number;
  /** Items in their order. Each key is made of `what`, `of`, and a number for a repetition of both. */
  readonly said: Map<string, SaidInTurn>;
}

const SHORT_CHARS = 160;
/** The factor of a run's number in the keys of turns: more than the turns of any run. */
const TURNS_OF_RUN = 10_000_000;

/** The digest of a journal. Add every record, in order. */
export class JournalDigest {
  /** Turns by a key that sorts them by run, then by turn. */
  readonly turns = new Map<number, TurnDigest>();
  readonly #comparable: (text: string) => string;
  #run = 0;
  #turn = 0;

  /** @param comparable replaces names that always differ between sessions, for `fingerprint`. Shown texts keep them. */
  constructor(comparable: (text: string) => string = (text) => text) {
    this.#comparable = comparable;
  }

  /** Adds one record. */
  add({ events }: Pick<JournalRecord, 'events'>): void {
    for (const event of events) this.#take(event);
  }

  #take(event: SessionEvent): void {
    switch (event.type) {
      case 'prompt_received':
        this.#run = event.run;
        this.#turn = 0;
        this.#say('prompt', null, event.messages.map(textOf).join('\n'));
        break;
      case 'persona_changed': {
        const { persona, model, system_prompt } = event.provision;
        this.#say('persona', null, `${persona.name} on ${model.name}`, `${event.fingerprint} ${system_prompt}`);
        break;
      }
      case 'turn_start':
        this.#turn = event.turn;
        break;
      case 'message_complete': {
        const { message } = event;
        const text = textOf(message);
        if (text !== '' || callsOf(message).length === 0)
          this.#say('answer', null, message.partial ? `${text} (interrupted)` : text);
        for (const { call_id, tool, args } of callsOf(message))
          this.#say('call', call_id, `${tool} ${canonicalJson(args)}`);
        return;
      }
      case 'message_injected':
      case 'reminder_fired':
        this.#say('message', event.seam, textOf(event.message));
        break;
      case 'hook_returned':
        this.#say('verdict', [event.hook, event.point, event.call_id].filter(Boolean).join(' '), verdictText(event));
        break;
      case 'approval_decided':
        this.#say(
          'decision',
          event.call_id,
          event.reason === undefined ? event.decision : `${event.decision}: ${event.reason}`,
        );
        break;
      case 'call_ended':
        this.#say('result', event.call_id, `${event.status}: ${resultText(event.result)}`);
        break;
      case 'turn_end':
        this.#turn = event.turn;
        break;
      case 'agent_end': {
        const why = event.error ? `${event.error.code}: ${event.error.message}` : event.reason;
        this.#turn = 0;
        this.#say('outcome', null, why === undefined ? event.stop_reason : `${event.stop_reason}: ${why}`);
        break;
      }
      default:
        break;
    }
  }

  #say(what: SaidInTurn['what'], of: string | null, text: string, whole = text): void {
    const key = this.#run * TURNS_OF_RUN + this.#turn;
    const digest = this.turns.get(key) ?? { run: this.#run, turn: this.#turn, said: new Map() };
    this.turns.set(key, digest);
    let name = `${what} ${of ?? ''}`;
    for (let again = 2; digest.said.has(name); again++) name = `${what} ${of ?? ''} ${again}`;
    const short = text.length > SHORT_CHARS ? `${cutGraphemes(text, SHORT_CHARS)}…` : text;
    digest.said.set(name, { what, of, text: short, fingerprint: fingerprint(this.#comparable(whole)) });
  }
}

function verdictText({ verdict, failure, not_run }: Omit<HookAnswer, 'hook'>): string {
  if (not_run) return 'not asked';
  if (failure) return `${failure.code}: ${failure.message}`;
  return verdict ? canonicalJson(verdict) : 'no verdict';
}

function resultText({ content }: ToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : `[${part.media_type}]`)).join('\n');
}
