/** One AG-UI run: what the request does to its session, and the session's events until it waits for somebody. */
import { type Event, EventType, type Message, PROTOCOL_VERSION } from '@ag-ui/core';
import { type BusSession, ResultCollector, SessionNotFoundError } from '@coxswain/client';
import { hasEnded, type JournalRecord } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type EventStream, openEventStream } from '../feed/event-stream.ts';
import { catchUpPages } from '../feed/journal-pages.ts';
import type { FeedItem } from '../feed/session-feed.ts';
import { watchFeed } from '../feed/watch-feed.ts';
import { clientFor, type GatewayContext, principalOf } from '../gateway-context.ts';
import type { Problem } from '../problem.ts';
import { whileListened } from '../send-command.ts';
import { unknownInterrupt } from './known-interrupts.ts';
import { bringMessage, readAnswers, type Sent, sendAnswers } from './run-commands.ts';
import { type RunIds, runEnd, waitsForSomebody } from './run-end.ts';
import { RunEvents } from './run-events.ts';
import type { RunRequest } from './run-input.ts';
import { messageIds, SessionMessages } from './session-messages.ts';
import { changesBetween, type SharedState, sharedState } from './shared-state.ts';
import { commandsOfMessage, sessionOfThread } from './thread-ids.ts';

/** So many records that the client has not been told of are told one by one; more are told as a snapshot. */
const RETOLD_MAX = 500;

/** Events of a session after which more of the shared state may differ than where it stands. */
const CHANGES_STATE =
  /^(approval_|steering_|reminder_|followup_|message_|injection_|agent_|suspended|resumed|turn_|persona_)/;

/** Serves it until the run ends, or whoever asked has gone: the session goes on. @throws Problem where it cannot begin. */
export async function serveRun(
  context: GatewayContext,
  request: FastifyRequest,
  reply: FastifyReply,
  run: RunRequest,
  persona: string | null,
): Promise<void> {
  const principal = principalOf(request);
  const session = clientFor(context, principal).session(sessionOfThread(run.threadId)) as BusSession;
  const sending = { context, session, principal, signal: whileListened(context, reply) };
  // What can be wrong is told by a status, before there is a stream.
  if (run.message === null || run.resume.length > 0) await context.known.expect(session);
  const answers = readAnswers(principal, run);
  const unknown = await unknownInterrupt(context, session, answers);
  // Before anything is sent: what streams at once is told, too, and who finds no place has changed nothing.
  const seat = context.feeds.join(session, principal, 'sse');
  const asError = ({ code, message }: Problem) => frame({ type: EventType.RUN_ERROR, code, message });
  let sent: readonly Sent[];
  let last: number;
  try {
    // AG-UI reports an unknown interrupt on the stream. The session is sent nothing: not its message, nor other answers.
    if (unknown) {
      await openEventStream(context, session, request, reply, asError, refuse(run, unknown), seat);
      return;
    }
    // Before the answers, with which the session may come to its end.
    const brought = run.message === null ? [] : [await bringMessage(sending, run, persona)];
    sent = [...brought, ...(await sendAnswers(sending, run.runId, answers))];
    last = await session.lastNumber();
  } catch (error) {
    seat.leave();
    throw error;
  }
  const tell = async ({ feed, sink, signal }: EventStream) => {
    const teller = new RunTeller(context, session, run, (event) => sink.text(frame(event)));
    await teller.begin(sent);
    const from = await teller.catchUp(fromRecord(run, sent, last));
    const readPage = catchUpPages(context.pages, session);
    if (!teller.isOver) await watchFeed(feed, teller, { from, deltas: true, signal, readPage });
  };
  await openEventStream(context, session, request, reply, asError, tell, seat);
}

/** Writes a run that fails at once. */
function refuse({ threadId, runId }: RunRequest, problem: Problem) {
  return async ({ sink }: EventStream): Promise<void> => {
    await sink.text(frame({ type: EventType.RUN_STARTED, threadId, runId, protocolVersion: PROTOCOL_VERSION }));
    throw problem;
  };
}

/** The first record that the client has yet to be told of; null where it is given all that there is as a snapshot. */
function fromRecord({ seen, message, resume }: RunRequest, sent: readonly Sent[], last: number): number | null {
  // Who only comes back may have been told half of an answer.
  if (sent.some(({ duplicate }) => duplicate) || (message === null && resume.length === 0)) return null;
  const taken = Math.min(...sent.flatMap(({ n }) => (n === null ? [] : [n])), last);
  const next = seen === null ? taken : Math.min(seen + 1, taken);
  return last - next > RETOLD_MAX ? null : Math.max(1, next);
}

function frame(event: Event): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Tells one client of one run. */
class RunTeller {
  readonly #context: GatewayContext;
  readonly #session: BusSession;
  readonly #ids: RunIds;
  readonly #tell: (event: Event) => Promise<boolean> | boolean;
  readonly #messageOf: (commandId: string) => string;
  readonly #events: RunEvents;
  readonly #results = new ResultCollector();
  #state: SharedState | null = null;
  /** The session has to come past this record before the run can end: its command is there. */
  #notBefore = 0;
  isOver = false;

  constructor(
    context: GatewayContext,
    session: BusSession,
    { threadId, runId, known }: RunRequest,
    tell: (event: Event) => Promise<boolean> | boolean,
  ) {
    this.#context = context;
    this.#session = session;
    this.#ids = { threadId, runId };
    this.#tell = tell;
    const own = new Map([...known].flatMap((id) => commandsOfMessage(session.id, id).map((command) => [command, id])));
    this.#messageOf = messageIds(session.id, own);
    this.#events = new RunEvents(session.id, this.#messageOf, known);
  }

  /** The run's first events: that it runs, and what became of what it asked for. */
  async begin(sent: readonly Sent[]): Promise<void> {
    await this.#tell({ type: EventType.RUN_STARTED, ...this.#ids, protocolVersion: PROTOCOL_VERSION });
    for (const one of sent) {
      await this.#tell({ type: EventType.CUSTOM, name: 'coxswain.receipt', value: { ...one } });
      this.#notBefore = Math.max(this.#notBefore, one.n ?? 0);
    }
  }

  /**
   * Tells the state, and where the client has not been told all along, the messages that there are.
   * @param from the first record that it is told of; null for a snapshot.
   * @returns the record from which on it is told what happens.
   */
  async catchUp(from: number | null): Promise<number> {
    const past = from === null ? await this.#context.expensiveReads.run(() => this.#readPast()) : null;
    const told = past?.newest.n ?? (from ?? 1) - 1;
    this.#events.startAfter(told);
    this.#state = sharedState(await this.#session.wire.stateAfter(told), told);
    await this.#tell({ type: EventType.STATE_SNAPSHOT, snapshot: this.#state });
    if (past) {
      await this.#tell({ type: EventType.MESSAGES_SNAPSHOT, messages: [...past.messages] });
      await this.#endAfter(past.newest);
    }
    return told + 1;
  }

  async #readPast(): Promise<{ readonly newest: JournalRecord; readonly messages: readonly Message[] }> {
    const messages = new SessionMessages(this.#session.id, this.#messageOf);
    let newest: JournalRecord | null = null;
    for await (const { record } of this.#session.journal()) {
      this.#results.add(record);
      messages.add(record);
      newest = record;
    }
    // It was there a moment ago.
    if (newest === null) throw new SessionNotFoundError(this.#session.id);
    return { newest, messages: messages.all };
  }

  /** Takes what comes. @returns whether more may come. */
  async write({ json, delta }: FeedItem): Promise<boolean> {
    this.#context.metrics.sent.inc({ what: delta === null ? 'record' : 'delta' });
    if (delta !== null) return this.#tellAll(this.#events.ofDelta(delta));
    const record = JSON.parse(json) as JournalRecord;
    if (!(await this.#tellAll(this.#events.ofRecord(record)))) return false;
    this.#results.add(record);
    await this.#tellState(record);
    await this.#endAfter(record);
    return !this.isOver;
  }

  async #tellAll(events: readonly Event[]): Promise<boolean> {
    for (const event of events) if (!(await this.#tell(event))) return false;
    return true;
  }

  async #tellState({ n, events, state }: JournalRecord): Promise<void> {
    const before = this.#state;
    if (!before) return;
    const changed = waitsForSomebody(state) || events.some(({ type }) => CHANGES_STATE.test(type));
    const after = changed ? sharedState(await this.#session.wire.stateAfter(n), n) : { ...before, n };
    this.#state = after;
    await this.#tell({ type: EventType.STATE_DELTA, delta: changesBetween(before, after) });
  }

  async #endAfter({ n, state }: JournalRecord): Promise<void> {
    if (n < this.#notBefore || !waitsForSomebody(state) || !this.#state) return;
    // What was waited for may have been settled while it was told.
    if (!hasEnded(state) && !waitsForSomebody(this.#state.state)) return;
    this.isOver = true;
    for (const event of this.#events.close()) await this.#tell(event);
    await this.#tell(runEnd(this.#ids, this.#state, hasEnded(state) ? this.#results.newest : null));
  }
}
