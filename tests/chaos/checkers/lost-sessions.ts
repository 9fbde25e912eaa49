/**
 * Whoever has lost a session lets go of it: a host that was stopped where it stood begins nothing for a session that another
 * host took over meanwhile; and of everything that a host had under way when it lost a session, and that it lived to hear the
 * end of, its log says that the end came too late.
 */
import { type ChaosEvidence, grouped, type StoredJournal } from '../evidence.ts';
import type { HostLine } from '../host-log.ts';
import type { ChaosChecker } from './check.ts';

/** By so much the server's clock and the hosts' may disagree about one moment. */
const CLOCKS_AGREE_MS = 20;

/** A session goes from one host to another. */
interface Loss {
  readonly session: string;
  /** The process that had it. */
  readonly pid: number;
  /** In which epoch. */
  readonly epoch: number;
  /** When the other one's first record was stored. */
  readonly atMs: number;
  /** What was open then. */
  readonly open: readonly string[];
  /** From when the process had it again; infinity if never. */
  readonly backAtMs: number;
  /** Whose ends it recorded once it had it again. */
  readonly recorded: ReadonlySet<string>;
}

/** See the top of the file. */
export const checkLostSessions: ChaosChecker = (evidence) => {
  const losses = lossesIn(evidence);
  return [...begunAfter(evidence, losses), ...unnoted(evidence, losses)];
};

/** Effects that were begun for others' sessions by hosts that had been stopped. */
function begunAfter({ history, hostLog }: ChaosEvidence, losses: readonly Loss[]) {
  const began = hostLog.filter(({ what }) => what === 'began');
  return history
    .of('process')
    .filter(({ role, did }) => role === 'host' && did === 'resumed')
    .flatMap(({ pid, name, atMs: resumedAtMs }) => {
      const lost = losses.filter((loss) => loss.pid === pid && loss.atMs < resumedAtMs - CLOCKS_AGREE_MS);
      return lost.flatMap(({ session, backAtMs }) =>
        began
          .filter((line) => line.pid === pid && line.session === session)
          .filter(({ atMs }) => atMs >= resumedAtMs && atMs < backAtMs - CLOCKS_AGREE_MS)
          .map(({ effect, atMs }) => ({
            session,
            what: `${effect} was begun by ${name} ${Math.round(atMs - resumedAtMs)} ms after it went on, when another host had the session`,
          })),
      );
    });
}

/** Effects that came to their end for nobody, and of which no log says so. */
function unnoted({ history, hostLog, effects }: ChaosEvidence, losses: readonly Loss[]) {
  // One that ended itself may have ended first. What the harness ends, it ends after everything has settled.
  const settledAtMs = history.of('phase').find(({ phase }) => phase === 'settled')?.atMs ?? Number.POSITIVE_INFINITY;
  const ended = new Set(
    history
      .of('process')
      .filter(({ did, atMs }) => atMs < settledAtMs && (did === 'killed' || did === 'told_to_stop' || did === 'ended'))
      .map(({ pid }) => pid),
  );
  const lines = grouped(hostLog.entries(), ([, line]) => keyOf(line));
  const known = new Set(effects.filter(({ what }) => what === 'start').map(({ key, epoch }) => `${epoch} ${key}`));
  return losses.flatMap(({ session, pid, open, epoch, atMs, recorded }) => {
    if (ended.has(pid)) return [];
    return open.flatMap((effect) => {
      const own = lines.get(keyOf({ pid, session, effect })) ?? [];
      const began = own.findLast(([, line]) => line.what === 'began' && line.atMs < atMs + CLOCKS_AGREE_MS)?.[0];
      const beganAt = began ?? (known.has(`${epoch} default.${session}.${effect}`) ? 0 : undefined);
      // What it had brought to its end and could not record is as good as ever, where nobody has recorded another end.
      const isKept = recorded.has(effect) && own.at(-1)?.[0] === began;
      if (beganAt === undefined || isKept || own.some(([i, { what }]) => what === 'late' && i > beganAt)) return [];
      return [
        {
          session,
          what: `${effect} was under way in process ${pid} when another host took over, and no log says it came late`,
        },
      ];
    });
  });
}

function lossesIn({ journals, hostLog }: ChaosEvidence): Loss[] {
  const pids = new Map(hostLog.flatMap(({ what, host, pid }) => (what === 'up' && host ? [[host, pid] as const] : [])));
  return journals.flatMap((journal) => lossesOf(journal, (attempt) => pids.get(attempt.split('.')[0] as string)));
}

function lossesOf({ session, records, storedAtMs }: StoredJournal, pidOf: (attempt: string) => number | undefined) {
  const owners = records.map(({ attempt }) => pidOf(attempt));
  return records.flatMap((_, i): Loss[] => {
    const last = records[i - 1];
    const pid = owners[i - 1];
    if (!last || pid === undefined || owners[i] === pid) return [];
    const back = owners.indexOf(pid, i);
    const recorded = records.flatMap(({ input }, at) =>
      at > i && owners[at] === pid && 'effect_id' in input && typeof input.effect_id === 'string'
        ? [input.effect_id]
        : [],
    );
    return [
      {
        session,
        pid,
        epoch: last.epoch,
        atMs: storedAtMs[i] as number,
        open: last.effects_open,
        backAtMs: back === -1 ? Number.POSITIVE_INFINITY : (storedAtMs[back] as number),
        recorded: new Set(recorded),
      },
    ];
  });
}

const keyOf = ({ pid, session, effect }: Pick<HostLine, 'pid' | 'session' | 'effect'>) => `${pid} ${session} ${effect}`;
