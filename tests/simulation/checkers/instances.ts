/** When instances of served work could be reached, according to the history. */
import type { ServedKind } from '@coxswain/protocol';
import type { Schedule } from '../generator.ts';
import type { History } from '../history.ts';
import { GIVES_UP, KILLED, STOPPED } from '../served/served-processes.ts';

/** The life of one instance. Times in milliseconds since the beginning. */
interface Life {
  readonly kind: string;
  readonly startedMs: number;
  /** When its requests ended with it. */
  goneMs: number;
  readonly freezes: { readonly fromMs: number; readonly untilMs: number }[];
}

/** A host that starts does not hear of an instance that has stood still for so long. */
export const UNHEARD_MS = 1_000;

/** See the top of the file. */
export class InstanceLives {
  readonly #lives = new Map<string, Life>();

  constructor(history: History) {
    for (const { host, did, atMs } of history.of('host')) {
      const [, forMs] = /^an instance stands still for (\d+) ms$/.exec(did) ?? [];
      const life = this.#lives.get(host);
      if (did === 'an instance starts')
        this.#lives.set(host, {
          kind: host.split('-')[0] ?? '',
          startedMs: atMs,
          goneMs: Number.POSITIVE_INFINITY,
          freezes: [],
        });
      else if (forMs !== undefined) life?.freezes.push({ fromMs: atMs, untilMs: atMs + Number(forMs) + 1 });
      else if (life && [KILLED, GIVES_UP, STOPPED].includes(did)) life.goneMs = Math.min(life.goneMs, atMs);
    }
  }

  /** Whether an instance was gone by a time. */
  isGone(instance: string, atMs: number): boolean {
    return (this.#lives.get(instance)?.goneMs ?? 0) <= atMs;
  }

  /** Whether hosts may have given an instance up within a time: it was gone, or stood still for too long. */
  failed(instance: string, fromMs: number, untilMs: number): boolean {
    const frozen = this.#lives
      .get(instance)
      ?.freezes.some(
        (one) => one.fromMs < untilMs && Math.min(one.untilMs, untilMs) - Math.max(one.fromMs, fromMs) >= UNHEARD_MS,
      );
    return frozen === true || this.isGone(instance, untilMs);
  }

  /** Whether any instance of a kind may have been given up by a time. */
  anyFailed(kind: ServedKind, untilMs: number): boolean {
    return [...this.#lives].some(([name, life]) => life.kind === kind && this.failed(name, 0, untilMs));
  }

  /** The longest time within an interval, in milliseconds, in which at least one instance of a kind could take requests. */
  longestServedMs(kind: ServedKind, fromMs: number, untilMs: number, quiet: readonly Interval[]): number {
    const lives = [...this.#lives.values()].filter((life) => life.kind === kind);
    const edges = [
      fromMs,
      untilMs,
      ...[...lives.flatMap(edgesOf), ...quiet.flatMap((one) => [one.fromMs, one.untilMs])],
    ]
      .filter((atMs) => atMs >= fromMs && atMs <= untilMs)
      .sort((a, b) => a - b);
    let longest = 0;
    let since: number | null = null;
    for (const [index, atMs] of edges.entries()) {
      const middle = (atMs + (edges[index + 1] ?? atMs)) / 2;
      const isServed = lives.some((life) => isUp(life, middle)) && !quiet.some((one) => isWithin(one, middle));
      if (isServed) since ??= atMs;
      if (since !== null) longest = Math.max(longest, (isServed ? (edges[index + 1] ?? atMs) : atMs) - since);
      if (!isServed) since = null;
    }
    return longest;
  }
}

/** An interval, in milliseconds since the beginning. */
export interface Interval {
  readonly fromMs: number;
  readonly untilMs: number;
}

const isWithin = ({ fromMs, untilMs }: Interval, atMs: number) => fromMs <= atMs && atMs < untilMs;

function isUp({ startedMs, goneMs, freezes }: Life, atMs: number): boolean {
  return startedMs <= atMs && atMs < goneMs && !freezes.some((one) => isWithin(one, atMs));
}

function edgesOf({ startedMs, goneMs, freezes }: Life): number[] {
  return [startedMs, goneMs, ...freezes.flatMap(({ fromMs, untilMs }) => [fromMs, untilMs])];
}

/** When the bus was out of reach, or too slow. */
export function quietTimes({ nemesis }: Schedule): Interval[] {
  return nemesis.flatMap((act) =>
    act.kind === 'outage' || act.kind === 'slow' ? [{ fromMs: act.atMs, untilMs: act.atMs + act.forMs }] : [],
  );
}

/** When a host stood still. */
export function pausesOf(history: History, host: string): Interval[] {
  return history.of('host').flatMap((one) => {
    const [, forMs] = (one.host === host && /^stands still for (\d+) ms$/.exec(one.did)) || [];
    return forMs === undefined ? [] : [{ fromMs: one.atMs, untilMs: one.atMs + Number(forMs) }];
  });
}
