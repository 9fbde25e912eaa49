/**
 * What is seen of a session from outside while it works here: meters move with each record, and spans are handed on as they
 * end. Nothing of it holds the session up, and nothing of it is written into the journal.
 */
import type { Blobs, Clock, Journal, Log, SpanSink, Telemetry } from '@coxswain/ports';
import { type JournalRecord, parseTraceparent, type SessionRef, type TraceContext } from '@coxswain/protocol';
import type { LoadTurns } from '../hosting/load-turns.ts';
import { readRecord } from '../journal/load-session.ts';
import { countRecord, type Step } from './session-meters.ts';
import { SessionSpans } from './session-spans.ts';

/** What it needs of its host. */
export interface ObserverPorts {
  readonly telemetry?: Telemetry | undefined;
  readonly journal: Pick<Journal, 'read'>;
  readonly blobs: Pick<Blobs, 'get'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Log;
}

/** The command that a record has consumed, as far as it is of interest here. */
export interface TakenCommand {
  readonly storedAtMs: number;
  readonly traceparent?: string | undefined;
}

interface Waiting {
  readonly record: JournalRecord;
  readonly cause: TraceContext | null;
}

/** Records that wait while the journal before them is read. Where more come, the session's spans are given up. */
const WAITING_MAX = 1_024;

/** Observes one session, for as long as it is here. */
export class SessionObserver {
  readonly #ports: ObserverPorts;
  readonly #ref: SessionRef;
  readonly #turns: LoadTurns;
  #spans: SessionSpans | null = null;
  #waiting: Waiting[] | null = null;
  #givenUp = false;

  /** @param turns in which journals are read whose beginning was not seen here. */
  constructor(ports: ObserverPorts, ref: SessionRef, turns: LoadTurns) {
    this.#ports = ports;
    this.#ref = ref;
    this.#turns = turns;
  }

  /** A record is durable. */
  recorded(record: JournalRecord, step: Step, command: TakenCommand | null): void {
    const { telemetry, clock, log } = this.#ports;
    for (const event of record.events) {
      if (event.type !== 'agent_end') continue;
      const { stop_reason, turns, error } = event;
      if (stop_reason === 'error' || error)
        log.warn({ stop_reason, turns, code: error?.code, error: error?.message }, 'a run has failed');
      else log.info({ stop_reason, turns }, 'a run has ended');
    }
    if (!telemetry) return;
    const consumed = record.cursor ? command : null;
    const waitedMs = consumed ? Math.max(0, clock.nowMs() - consumed.storedAtMs) : null;
    countRecord(telemetry.meters, record, step, waitedMs);
    const { spans } = telemetry;
    if (spans && !this.#givenUp) this.#trace(spans, record, parseTraceparent(consumed?.traceparent));
  }

  #trace(sink: SpanSink, record: JournalRecord, cause: TraceContext | null): void {
    if (this.#waiting) {
      this.#waiting.push({ record, cause });
      if (this.#waiting.length > WAITING_MAX) this.#giveUp('reading its journal takes too long');
      return;
    }
    if (!this.#spans && record.n > 1) {
      this.#waiting = [{ record, cause }];
      void this.#catchUp(sink, record.n);
      return;
    }
    this.#spans ??= new SessionSpans(this.#ref, sink);
    for (const span of this.#spans.take(record, cause)) sink.take(span);
  }

  /** What an earlier owner has recorded is read once more: its spans were that one's to hand on, the open ones go on here. */
  async #catchUp(sink: SpanSink, n: number): Promise<void> {
    const { journal, blobs } = this.#ports;
    try {
      await this.#turns.take(async () => {
        const spans = new SessionSpans(this.#ref, sink);
        for await (const { bytes } of journal.read(this.#ref)) {
          const record = await readRecord(bytes, blobs);
          if (record.n >= n) break;
          spans.take(record);
        }
        this.#spans = spans;
      });
      const waiting = this.#waiting ?? [];
      this.#waiting = null;
      for (const { record, cause } of waiting) this.#trace(sink, record, cause);
    } catch (error) {
      this.#giveUp((error as Error).message);
    }
  }

  /** The session goes on; only its trace lacks what follows. `cox session trace` shows it all the same. */
  #giveUp(why: string): void {
    this.#givenUp = true;
    this.#waiting = null;
    this.#spans = null;
    this.#ports.log.warn({ session_id: this.#ref.sessionId, error: why }, 'the spans of a session are omitted');
  }
}
