/** An app with sessions that keep the commands which they receive. */
import type { BusSession, JournalReading, SendOptions, SendStage, WireSentCommand } from '@coxswain/client';
import { CommandId, type Verb } from '@coxswain/protocol';
import type { ContextParts } from '../src/app/mod.ts';
import type { GatewayClient } from '../src/context/mod.ts';
import { type AppWithoutBus, appWithoutBus, silence } from './app-without-bus.ts';

/** A command that the gateway has sent. */
export interface Sent {
  readonly session: string;
  readonly verb: Verb;
  readonly body: object;
  readonly options: SendOptions<SendStage>;
}

/** The answer to a command that is stored, and not yet accepted. */
export const STORED: WireSentCommand = { commandId: CommandId.parse('c-1'), seq: 7, duplicate: false };

/** What the sessions have received, and how they answer. `Object.assign(sessions, new Sessions())` starts anew. */
export class Sessions {
  sent: Sent[] = [];
  answer: (sent: Sent) => Promise<WireSentCommand> = async () => STORED;
  /** The inputs that each session has recorded. */
  recorded: object[] = [];
  /** The numbers of records that readers of the journal buffer; undefined for the default. */
  buffered: (number | undefined)[] = [];
  /** The inputs that each session records while it is followed, and the numbers from which it is followed. */
  recordedLater: object[] = [];
  followedFrom: number[] = [];

  /** A session of this id. */
  of(id: string): BusSession {
    const session = {
      id,
      ref: { tenant: 'default', sessionId: id },
      lastNumber: async () => 3,
      journal: (options: JournalReading = {}) => this.#journal(options),
      records: ({ from, signal, deltas }: { from: number; signal: AbortSignal; deltas?: boolean }) =>
        deltas ? silence({ signal }) : this.#records(from),
      wire: {
        send: (verb: Verb, body: object, options: Sent['options']) => {
          const one = { session: id, verb, body, options };
          this.sent.push(one);
          return this.answer(one);
        },
      },
    };
    return session as unknown as BusSession;
  }

  async *#journal({ atOnce }: JournalReading) {
    this.buffered.push(atOnce);
    for (const [at, input] of this.recorded.entries()) yield { record: { n: at + 1, input } };
  }

  async *#records(from: number) {
    this.followedFrom.push(from);
    for (const [at, input] of this.recordedLater.entries()) yield { n: from + at, input };
  }
}

/** Creates an app with these sessions. */
export async function appWithSessions(change: Partial<ContextParts> = {}) {
  const sessions = new Sessions();
  const clientOf = () => ({ session: (id: string) => sessions.of(id) }) as unknown as GatewayClient;
  const made: AppWithoutBus = await appWithoutBus({ clientOf, ...change });
  const ask = async (method: string, url: string, payload?: object, more: Record<string, string> = {}) => {
    const headers = { host: 'gateway.test', authorization: made.authorization, ...more };
    const request = { method: method as 'POST', url, headers, ...(payload === undefined ? {} : { payload }) };
    const answer = await made.app.inject(request);
    return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
  };
  return { ...made, sessions, ask };
}
