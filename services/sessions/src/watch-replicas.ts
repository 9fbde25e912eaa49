/**
 * The background check of replicas. One host of a bus slowly reads every stream from every server. It keeps the
 * findings for its metrics and for `cox health`.
 */
import { setTimeout } from 'node:timers/promises';
import type { CheckedStream, ReplicaFinding } from '@coxswain/adapter-nats';
import type { Log } from '@coxswain/ports';

/** Dependencies of the check. */
export interface WatchedReplicas {
  /** Whether this host runs the check. Rejects while NATS does not respond. */
  isFirst(): Promise<boolean>;
  /** Reads all streams. Rejects while NATS does not respond. */
  check(signal: AbortSignal): AsyncIterable<CheckedStream>;
  readonly log: Log;
}

/** The last result of a host's background check. */
export interface ReplicaWatch {
  /** Number of findings per kind; empty before the first check, and on hosts that do not run it. */
  counts(): ReadonlyMap<string, number>;
  /** One sentence for `cox health`; null if there is no finding, or this host does not run the check. */
  remark(): string | null;
  stop(): void;
}

/** Delays before the first check, between checks, and after a check that did not read every stream. */
const FIRST_MS = 5_000;
const EVERY_MS = 15 * 60_000;
const RETRY_MS = 60_000;
const KINDS: readonly ReplicaFinding['kind'][] = [
  'unreadable',
  'missing',
  'differs',
  'lagging',
  'offline',
  'unchecked',
];

/** Starts the background check. */
export function watchReplicas(
  { isFirst, check, log }: WatchedReplicas,
  {
    firstMs = FIRST_MS,
    everyMs = EVERY_MS,
    retryMs = RETRY_MS,
  }: { readonly firstMs?: number; readonly everyMs?: number; readonly retryMs?: number } = {},
): ReplicaWatch {
  const ended = new AbortController();
  let last: readonly ReplicaFinding[] | null = null;

  /** Runs one check. @returns whether every stream was read. */
  async function look(): Promise<boolean> {
    if (!(await isFirst())) {
      last = null;
      return true;
    }
    const found: ReplicaFinding[] = [];
    const checked = new Set<string>();
    try {
      for await (const { stream, findings } of check(ended.signal)) {
        checked.add(stream);
        found.push(...findings);
      }
    } catch (error) {
      // Keep the earlier findings of streams that were not reached.
      const kept = (last ?? []).filter(({ stream }) => !checked.has(stream));
      if (checked.size > 0) commit([...found, ...kept]);
      throw error;
    }
    if (!ended.signal.aborted) commit(found);
    return found.every(({ kind }) => kind !== 'unchecked');
  }

  function commit(found: readonly ReplicaFinding[]): void {
    const known = new Set((last ?? []).map(({ message }) => message));
    for (const { stream, server, seq, message, remedy } of found)
      if (!known.has(message))
        log.error({ stream, server, seq, remedy }, `a replica is damaged or incomplete: ${message}`);
    if (found.length === 0 && known.size > 0) log.info({}, 'all replicas are complete again');
    last = found;
  }

  /** Contract: does not reject. */
  async function run(): Promise<void> {
    for (let pauseMs = firstMs; !ended.signal.aborted; ) {
      await setTimeout(pauseMs, undefined, { signal: ended.signal, ref: false }).catch(() => undefined);
      if (ended.signal.aborted) return;
      try {
        pauseMs = (await look()) ? everyMs : retryMs;
      } catch (error) {
        pauseMs = retryMs;
        log.warn({ error: (error as Error).message }, 'the replicas cannot be checked now');
      }
    }
  }
  void run();

  return {
    counts: () => new Map(last === null ? [] : KINDS.map((kind) => [kind, count(last ?? [], kind)])),
    remark() {
      const [first] = last ?? [];
      if (!first || !last) return null;
      const more = last.length === 1 ? '' : `, and ${last.length - 1} more`;
      return `${first.stream}: ${first.message}${more}; run cox doctor for the remedy`;
    },
    stop: () => ended.abort(),
  };
}

function count(findings: readonly ReplicaFinding[], kind: ReplicaFinding['kind']): number {
  return findings.filter((finding) => finding.kind === kind).length;
}
