/**
 * Metrics and spans of a session that runs on this host: each record updates the metrics, and spans are exported when they end.
 * No step of the session waits for a port of the observer, and the observer writes nothing to the journal.
 */
import type { Blobs, Clock, Journal, Log, SpanSink, Telemetry } from '@coxswain/ports';
import { type JournalRecord, parseTraceparent, type SessionRef, type TraceContext } from '@coxswain/protocol';
import type { LoadLimit } from '../hosting/load-limit.ts';
import { readRecord } from '../journal/load-session.ts';
import { countCommand, countRecord, type Step } from './session-meters.ts';
import { SessionSpans } from './session-spans.ts';

/** Ports that the observer uses. */
export interface ObserverPorts {
  readonly telemetry?: Telemetry | undefined;
  readonly journal: Pick<Journal, 'read'>;
  readonly blobs: Pick<Blobs, 'get'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Log;
}

/** The command that a record consumed, reduced to what metrics and spans need. */
export interface TakenCommand {
  readonly storedAtMs: number;
  readonly traceparent?: string | undefined;
}

interface Waiting {
  readonly record: JournalRecord;
  readonly cause: TraceContext | null;
}

/** Maximum number of records that wait while the earlier journal is read. With more, the observer gives up the session's spans. */
const WAITING_MAX = 1_024;
/** Maximum size of these records together, as JSON in UTF-8 with their large fields. With more, the observer gives up, too. */
const WAITING_MAX_BYTES = 8 * 1024 * 1024;

/** Observes one session while it runs on this host. */
export class SessionObserver {
  readonly #ports: ObserverPorts;
  readonly #ref: SessionRef;
  readonly #loads: LoadLimit;
  #spans: SessionSpans | null = null;
  #waiting: Waiting[] | null = null;
  #waitingBytes = 0;
  #givenUp = false;

  /** @param loads limits how many journals the host reads at a time, for spans of sessions that it has loaded. */
  constructor(ports: ObserverPorts, ref: SessionRef, loads: LoadLimit) {
    this.#ports = ports;
    this.#ref = ref;
    this.#loads = loads;
  }

  /**
   * Observes a record after it became durable. Logs the end of a run.
   * @param command the command that the record consumed; null for other records.
   * @param isCopied whether the record is copied. What it reports happened in the origin: only the command that asked for
   *   the copy is counted.
   */
  recorded(record: JournalRecord, step: Step, command: TakenCommand | null, isCopied = false): void {
    const { telemetry, clock, log } = this.#ports;
    for (const event of isCopied ? [] : record.events) {
      if (event.type !== 'agent_end') continue;
      const { stop_reason, turns, error } = event;
      if (stop_reason === 'error' || error)
        log.warn({ stop_reason, turns, code: error?.code, error: error?.message }, 'a run has failed');
      else log.info({ stop_reason, turns }, 'a run has ended');
    }
    if (!telemetry) return;
    const consumed = record.cursor ? command : null;
    const waitedMs = consumed ? Math.max(0, clock.nowMs() - consumed.storedAtMs) : null;
    if (!isCopied) countRecord(telemetry.meters, record, step, waitedMs);
    else if (consumed) countCommand(telemetry.meters, record, waitedMs);
    const { spans } = telemetry;
    if (spans && !this.#givenUp) this.#trace(spans, record, parseTraceparent(consumed?.traceparent));
  }

  #trace(sink: SpanSink, record: JournalRecord, cause: TraceContext | null): void {
    if (this.#waiting) {
      this.#waiting.push({ record, cause });
      this.#waitingBytes += Buffer.byteLength(JSON.stringify(record), 'utf8');
      if (this.#waiting.length > WAITING_MAX || this.#waitingBytes > WAITING_MAX_BYTES)
        this.#giveUp('reading its journal takes too long');
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

  /**
   * Reads the records before the first one of this observer. Earlier runners, here or on other hosts, have exported the
   * spans that ended in those records. Spans that are still open continue here.
   */
  async #catchUp(sink: SpanSink, n: number): Promise<void> {
    const { journal, blobs } = this.#ports;
    try {
      await this.#loads.take(async () => {
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

  /** The session continues; only its exported trace ends here. `cox session trace` still shows the whole trace. */
  #giveUp(why: string): void {
    this.#givenUp = true;
    this.#waiting = null;
    this.#spans = null;
    this.#ports.log.warn({ session_id: this.#ref.sessionId, error: why }, 'the spans of a session are omitted');
  }
}
