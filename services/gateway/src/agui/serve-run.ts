/**
 * Serves an AG-UI run: sends the request's commands to the session, and streams its events until the session ends its
 * run or waits.
 */
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

/** The maximum number of missed records that are sent as events. For more records, the client gets a snapshot. */
const RETOLD_MAX = 500;

/** Types of events after which members of the shared state other than `n` may differ. */
const CHANGES_STATE =
  /^(approval_|steering_|reminder_|followup_|message_|injection_|agent_|suspended|resumed|turn_|persona_)/;

/**
 * Streams a run as server-sent events until it ends or the client disconnects. The session continues after a
 * disconnect.
 * @param persona persona of a new session from the request's path; null if the path names none.
 * @throws Problem, or an error of sending a command, before the stream starts.
 */
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
  // Errors before the stream starts are reported as an HTTP status.
  if (run.message === null || run.resume.length > 0) await context.known.expect(session);
  const answers = readAnswers(principal, run);
  const unknown = await unknownInterrupt(context, session, answers);
  // Join the feed before any command is sent: the client gets the first pieces of an answer, and a client without a
  // free slot changes nothing.
  const seat = context.feeds.join(session, principal, 'sse');
  const asError = ({ code, message }: Problem) => frame({ type: EventType.RUN_ERROR, code, message });
  let sent: readonly Sent[];
  let last: number;
  try {
    // AG-UI reports an unknown interrupt on the stream. The gateway then sends neither the message nor other answers to
    // the session.
    if (unknown) {
      await openEventStream(context, session, request, reply, asError, refuse(run, unknown), seat);
      return;
    }
    // The message goes before the answers, because an answer may end the session's run.
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

/** Writes a run that fails immediately. */
function refuse({ threadId, runId }: RunRequest, problem: Problem) {
  return async ({ sink }: EventStream): Promise<void> => {
    await sink.text(frame({ type: EventType.RUN_STARTED, threadId, runId, protocolVersion: PROTOCOL_VERSION }));
    throw problem;
  };
}

/** The first record to send as events; null if the client gets a snapshot of everything. */
function fromRecord({ seen, message, resume }: RunRequest, sent: readonly Sent[], last: number): number | null {
  // A client that reconnects may have received a part of an answer.
  if (sent.some(({ duplicate }) => duplicate) || (message === null && resume.length === 0)) return null;
  const taken = Math.min(...sent.flatMap(({ n }) => (n === null ? [] : [n])), last);
  const next = seen === null ? taken : Math.min(seen + 1, taken);
  return last - next > RETOLD_MAX ? null : Math.max(1, next);
}

function frame(event: Event): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Sends one run to one client. */
class RunTeller {
  readonly #context: GatewayContext;
  readonly #session: BusSession;
  readonly #ids: RunIds;
  readonly #tell: (event: Event) => Promise<boolean> | boolean;
  readonly #messageOf: (commandId: string) => string;
  readonly #events: RunEvents;
  readonly #results = new ResultCollector();
  #state: SharedState | null = null;
  /** The run does not end before this record, which contains its newest command. */
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

  /** Sends the first events of the run: its start, and the receipts of its commands. */
  async begin(sent: readonly Sent[]): Promise<void> {
    await this.#tell({ type: EventType.RUN_STARTED, ...this.#ids, protocolVersion: PROTOCOL_VERSION });
    for (const one of sent) {
      await this.#tell({ type: EventType.CUSTOM, name: 'coxswain.receipt', value: { ...one } });
      this.#notBefore = Math.max(this.#notBefore, one.n ?? 0);
    }
  }

  /**
   * Sends the state. Without a start record, also sends a snapshot of the messages.
   * @param from the first record to send as events; null for a snapshot.
   * @returns the number of the first record to send as events.
   * @throws SessionNotFoundError; Problem `gateway_busy`.
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
    // The session existed a moment ago; it was deleted since.
    if (newest === null) throw new SessionNotFoundError(this.#session.id);
    return { newest, messages: messages.all };
  }

  /**
   * Sends the events of a record or a delta.
   * @returns whether more may follow.
   */
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
    // An approval may have been decided before the state was read.
    if (!hasEnded(state) && !waitsForSomebody(this.#state.state)) return;
    this.isOver = true;
    for (const event of this.#events.close()) await this.#tell(event);
    await this.#tell(runEnd(this.#ids, this.#state, hasEnded(state) ? this.#results.newest : null));
  }
}
