/** What a journal says, turn by turn, in short: what people compare when they compare two sessions. */
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

/** One thing that was said or done in a turn. */
export interface SaidInTurn {
  readonly what: 'prompt' | 'message' | 'answer' | 'call' | 'verdict' | 'decision' | 'result' | 'persona' | 'outcome';
  /** The call or hook that it is about. */
  readonly of: string | null;
  /** In short. */
  readonly text: string;
  /** Of the whole text, without names that no two sessions share. */
  readonly fingerprint: string;
}

/** One turn; turn 0 is what belongs to the run. */
export interface TurnDigest {
  readonly run: number;
  readonly turn: number;
  /** In the order in which it happened, by name. */
  readonly said: Map<string, SaidInTurn>;
}

const SHORT_CHARS = 160;
/** Turns of one run, at most: what keys are made of. */
const TURNS_OF_RUN = 10_000_000;

/** The digest of a journal: feed it every record, in order. */
export class JournalDigest {
  /** Turns by run and turn, in order. */
  readonly turns = new Map<number, TurnDigest>();
  readonly #comparable: (text: string) => string;
  #run = 0;
  #turn = 0;

  /** @param comparable takes names out of a text that no two sessions share. Texts are shown with them. */
  constructor(comparable: (text: string) => string = (text) => text) {
    this.#comparable = comparable;
  }

  /** Takes a record in. */
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
