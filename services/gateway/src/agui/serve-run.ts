/**
 * Serves an AG-UI run: sends the request's commands to the session, and streams its events until the session ends its
 * run or waits.
 */
import { type Event, EventType, type Message, PROTOCOL_VERSION } from '@ag-ui/core';
import { type BusSession, ResultCollector, SessionNotFoundError } from '@coxswain/client';
import { hasEnded, type JournalRecord, topState } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../auth/mod.ts';
import { abortOnDisconnectOrStop } from '../commands/mod.ts';
import { clientFor, GATEWAY_BOUNDS, type GatewayContext, type Problem, principalOf } from '../context/mod.ts';
import {
  createPageReader,
  type EventStream,
  type FeedItem,
  openEventStream,
  type SessionFeed,
  watchFeed,
} from '../feed/mod.ts';
import { findUnknownInterrupt } from './known-interrupts.ts';
import { type CommandResult, type CommandSender, deliverMessage, readAnswers, sendAnswers } from './run-commands.ts';
import { buildRunEnd, endsAguiRun, type RunIds } from './run-end.ts';
import { RunEvents } from './run-events.ts';
import type { RunRequest } from './run-input.ts';
import { createMessageIds, SessionMessages } from './session-messages.ts';
import { changesBetween, type SharedState, sharedState } from './shared-state.ts';
import { stateAfter } from './state-reads.ts';
import { sessionOfThread } from './thread-ids.ts';

/** The maximum number of missed records that are sent as events. For more records, the client gets a snapshot. */
const MISSED_RECORDS_MAX = 500;

/** Types of events after which members of the shared state other than `n` and `state` may differ. */
const CHANGES_STATE =
  /^(agent_|approval_|compaction_done|control_|followup_|injection_|message_|persona_|prompt_|reminder_|resumed|settings_|steering_|suspended|turn_)/;

/**
 * Sends the commands of a run.
 * @param persona persona of a new session from the request's path; null if the path names none.
 * @returns a function that streams the run as server-sent events until it ends or the client disconnects. The session
 *   continues after a disconnect. It must be called, and does not keep the request of the run.
 * @throws Problem, or an error of sending a command.
 */
export async function startRun(
  context: GatewayContext,
  request: FastifyRequest,
  reply: FastifyReply,
  run: RunRequest,
  persona: string | null,
): Promise<() => Promise<void>> {
  const principal = principalOf(request);
  const session = clientFor(context, principal).session(sessionOfThread(run.threadId)) as BusSession;
  const sender = { context, session, principal, signal: abortOnDisconnectOrStop(context, reply) };
  // Errors before the stream starts are reported as an HTTP status.
  if (run.message === null || run.resume.length > 0) await context.known.expect(session);
  const answers = readAnswers(principal, run);
  const unknown = await findUnknownInterrupt(context, session, principal, answers, sender.signal);
  // Join the feed before any command is sent: the client gets the first pieces of an answer, and a client without a
  // free slot changes nothing.
  const seat = context.feeds.join(session, principal, 'sse');
  const asError = ({ code, message }: Problem) => frame({ type: EventType.RUN_ERROR, code, message });
  const stream = (send: (stream: EventStream) => Promise<void>) => () =>
    openEventStream(context, session, request, reply, asError, send, seat);
  // AG-UI reports an unknown interrupt on the stream. The gateway then sends neither the message nor other answers to
  // the session.
  if (unknown) return stream(failRun(run, unknown));
  let sent: readonly CommandResult[];
  let last: number;
  try {
    // The message goes before the answers, because an answer may end the session's run.
    const delivered = run.message === null ? [] : [await deliverMessage(sender, run, persona)];
    sent = [...delivered, ...(await sendAnswers(sender, run.runId, answers))];
    last = await session.lastNumber();
  } catch (error) {
    seat.leave();
    throw error;
  }
  const { threadId, runId, known } = run;
  const first = firstRecordToSend(run, sent, last);
  return stream(async (opened) => {
    const { feed, signal } = opened;
    const writer = new RunWriter(sender, opened, { threadId, runId }, known);
    await writer.sendStart(sent);
    const from = await writer.catchUp(first, signal);
    const readPage = createPageReader(context.pages, session, principal);
    if (from !== null && !writer.isOver) await watchFeed(feed, writer, { from, deltas: true, signal, readPage });
  });
}

/** Writes a run that fails immediately. */
function failRun({ threadId, runId }: RunRequest, problem: Problem) {
  return async ({ sink }: EventStream): Promise<void> => {
    await sink.text(frame({ type: EventType.RUN_STARTED, threadId, runId, protocolVersion: PROTOCOL_VERSION }));
    throw problem;
  };
}

/** The first record to send as events; null if the client gets a snapshot of everything. */
function firstRecordToSend(
  { seen, message, resume }: RunRequest,
  sent: readonly CommandResult[],
  last: number,
): number | null {
  // A client that reconnects may have received a part of an answer.
  if (sent.some(({ duplicate }) => duplicate) || (message === null && resume.length === 0)) return null;
  const taken = Math.min(...sent.flatMap(({ n }) => (n === null ? [] : [n])), last);
  const next = seen === null ? taken : Math.min(seen + 1, taken);
  return last - next > MISSED_RECORDS_MAX ? null : Math.max(1, next);
}

function frame(event: Event): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** What a snapshot shows of a journal. */
interface Past {
  readonly newest: JournalRecord;
  readonly messages: readonly Message[];
}

/** Sends one run to one client. */
class RunWriter {
  readonly #context: GatewayContext;
  readonly #session: BusSession;
  readonly #principal: Principal;
  readonly #feed: SessionFeed;
  readonly #ids: RunIds;
  readonly #send: (event: Event) => Promise<boolean> | boolean;
  readonly #messageOf: (commandId: string) => string;
  readonly #events: RunEvents;
  readonly #results = new ResultCollector();
  #state: SharedState | null = null;
  /** The run does not end before this record, which contains its newest command. */
  #notBefore = 0;
  isOver = false;

  constructor(
    { context, session, principal }: CommandSender,
    { feed, sink }: Pick<EventStream, 'feed' | 'sink'>,
    ids: RunIds,
    known: ReadonlySet<string>,
  ) {
    this.#context = context;
    this.#session = session;
    this.#principal = principal;
    this.#feed = feed;
    this.#ids = ids;
    this.#send = (event) => sink.text(frame(event));
    this.#messageOf = createMessageIds(session.id, known);
    this.#events = new RunEvents(session.id, this.#messageOf, known);
  }

  /** Sends the first events of the run: its start, and the receipts of its commands. */
  async sendStart(sent: readonly CommandResult[]): Promise<void> {
    await this.#send({ type: EventType.RUN_STARTED, ...this.#ids, protocolVersion: PROTOCOL_VERSION });
    for (const one of sent) {
      await this.#send({ type: EventType.CUSTOM, name: 'coxswain.receipt', value: { ...one } });
      this.#notBefore = Math.max(this.#notBefore, one.n ?? 0);
    }
  }

  /**
   * Sends the state. Without a start record, also sends a snapshot of the messages.
   * @param from the first record to send as events; null for a snapshot.
   * @returns the number of the first record to send as events; null if the client has left.
   * @throws SessionNotFoundError; Problem `gateway_busy`.
   */
  async catchUp(from: number | null, signal: AbortSignal): Promise<number | null> {
    let past: Past | null;
    try {
      past =
        from === null
          ? await this.#context.expensiveReads.run(this.#principal, () => this.#readPast(signal), signal)
          : null;
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
    const lastSent = past?.newest.n ?? (from ?? 1) - 1;
    this.#events.startAfter(lastSent);
    this.#state = sharedState(await stateAfter(this.#feed, this.#session, lastSent), lastSent);
    await this.#send({ type: EventType.STATE_SNAPSHOT, snapshot: this.#state });
    if (past) {
      await this.#send({ type: EventType.MESSAGES_SNAPSHOT, messages: [...past.messages] });
      await this.#endIfDone(past.newest);
    }
    return lastSent + 1;
  }

  /** Reads the whole journal. The signal ends the read. */
  async #readPast(signal: AbortSignal): Promise<Past> {
    const messages = new SessionMessages(this.#session.id, this.#messageOf);
    let newest: JournalRecord | null = null;
    for await (const { record } of this.#session.journal({ atOnce: GATEWAY_BOUNDS.journalReadAhead })) {
      signal.throwIfAborted();
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
    if (delta !== null) return this.#sendAll(this.#events.translateDelta(delta));
    const record = JSON.parse(json) as JournalRecord;
    if (!(await this.#sendAll(this.#events.translateRecord(record)))) return false;
    this.#results.add(record);
    await this.#sendState(record);
    await this.#endIfDone(record);
    return !this.isOver;
  }

  async #sendAll(events: readonly Event[]): Promise<boolean> {
    for (const event of events) if (!(await this.#send(event))) return false;
    return true;
  }

  async #sendState({ n, events, state }: JournalRecord): Promise<void> {
    const before = this.#state;
    if (!before) return;
    const changed = endsAguiRun(state) || events.some(({ type }) => CHANGES_STATE.test(type));
    const after = changed
      ? sharedState(await stateAfter(this.#feed, this.#session, n), n)
      : { ...before, n, state: topState(state) };
    this.#state = after;
    await this.#send({ type: EventType.STATE_DELTA, delta: changesBetween(before, after) });
  }

  async #endIfDone({ n, state }: JournalRecord): Promise<void> {
    if (n < this.#notBefore || !endsAguiRun(state) || !this.#state) return;
    // An approval may have been decided before the state was read.
    if (!hasEnded(state) && !endsAguiRun(this.#state.state)) return;
    this.isOver = true;
    for (const event of this.#events.close()) await this.#send(event);
    await this.#send(buildRunEnd(this.#ids, this.#state, hasEnded(state) ? this.#results.newest : null));
  }
}
