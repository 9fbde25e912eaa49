/** The spans of a session and its descendants, made from their journals alone. No collector is needed. */
import type { BusClient } from '@coxswain/client';
import { type EndedSpan, type JournalRecord, SessionId, type SessionRef } from '@coxswain/protocol';
import { SessionSpans } from '@coxswain/session';
import { exportedRecords } from './exported-records.ts';
import type { OpenJournal } from './journal-source.ts';

/** The spans of a session and of its descendants. */
export interface CollectedTrace {
  readonly sessionId: string;
  /** Spans that have ended, and spans in progress up to the newest record. */
  readonly spans: readonly EndedSpan[];
  /** Number of sessions without a readable journal, or beyond the limit. */
  readonly leftOut: number;
}

/** Maximum number of sessions in one trace. */
const SESSIONS_MAX = 256;
const CONCURRENT_READS = 8;

/** Reads a session and its descendants. @throws the errors of reading the topmost journal. */
export async function traceOfSession(client: BusClient, sessionId: string): Promise<CollectedTrace> {
  const seen = new Set([sessionId]);
  const top = await spansOf(client, sessionId);
  const spans = [...top.spans];
  let generation = top.children;
  let leftOut = 0;
  while (generation.length > 0) {
    const fresh = [...new Set(generation)].filter((id) => !seen.has(id));
    const wanted = fresh.slice(0, Math.max(0, SESSIONS_MAX - seen.size));
    leftOut += fresh.length - wanted.length;
    const next: string[] = [];
    for (let start = 0; start < wanted.length; start += CONCURRENT_READS) {
      const some = wanted.slice(start, start + CONCURRENT_READS);
      // A child that cannot be read is missing from the trace, which is still shown.
      const found = await Promise.all(some.map((id) => spansOf(client, id).catch(() => null)));
      for (const one of found) {
        if (!one) leftOut++;
        spans.push(...(one?.spans ?? []));
        next.push(...(one?.children ?? []));
      }
    }
    for (const id of wanted) seen.add(id);
    generation = next;
  }
  return { sessionId, spans, leftOut };
}

/** Reads an exported journal, which does not contain child sessions. @throws as {@link exportedRecords} does. */
export async function traceOfJournal(journal: OpenJournal, tenant: SessionRef['tenant']): Promise<CollectedTrace> {
  let collector: SpanCollector | null = null;
  for await (const { record } of exportedRecords(journal)) {
    collector ??= new SpanCollector({ tenant, sessionId: SessionId.parse(record.session_id) });
    collector.take(record);
  }
  if (!collector) throw new Error('the journal contains no record');
  return { sessionId: collector.ref.sessionId, spans: collector.all(), leftOut: collector.children.length };
}

async function spansOf(client: BusClient, sessionId: string) {
  const { ref } = client.session(sessionId);
  const collector = new SpanCollector(ref);
  for await (const { record } of client.session(sessionId).journal()) collector.take(record);
  return { spans: collector.all(), children: collector.children };
}

class SpanCollector {
  readonly ref: SessionRef;
  readonly #spans: SessionSpans;
  readonly #ended: EndedSpan[] = [];
  #atMs = 0;

  constructor(ref: SessionRef) {
    this.ref = ref;
    this.#spans = new SessionSpans(ref);
  }

  take(record: JournalRecord): void {
    this.#ended.push(...this.#spans.take(record));
    this.#atMs = Date.parse(record.at);
  }

  get children(): readonly string[] {
    return this.#spans.children;
  }

  all(): readonly EndedSpan[] {
    return [...this.#ended, ...this.#spans.open(this.#atMs)];
  }
}
