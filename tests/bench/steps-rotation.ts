/** The order of the runs of the part `steps`. A peer that fails ends its own runs only. */
import type { Peer, PeerRun } from './peers.ts';
import type { OurRun, StepsRuns } from './steps-runs.ts';

/** The two sides of a comparison. */
export interface Sides {
  ourRun(): Promise<OurRun>;
  readonly peers: readonly Pick<Peer, 'name' | 'run'>[];
}

/**
 * Runs us and each peer so many times, in rotation: no side always has the machine as the same other one left it.
 * @param levels sessions and turns of each level, for the peers.
 * @param untilQuiet waits until the machine is quiet, and resolves with the share of the CPU time that is in use.
 * @returns all runs that ended. A peer that failed has the reason, and is not run again.
 * @throws the error of a run of ours.
 */
export async function runInRotation(
  rounds: number,
  { ourRun, peers }: Sides,
  levels: readonly (readonly [sessions: number, turns: number])[],
  untilQuiet: () => Promise<number>,
): Promise<StepsRuns> {
  const ours: OurRun[] = [];
  const theirs = peers.map(({ name }) => ({ name, runs: [] as PeerRun[], failed: undefined as string | undefined }));
  const busyBefore: number[] = [];
  const sides = [
    null,
    ...peers.flatMap((peer, index) => {
      const kept = theirs[index];
      return kept ? [{ peer, kept }] : [];
    }),
  ];
  for (let round = 0; round < rounds; round++) {
    const first = round % sides.length;
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      if (side?.kept.failed !== undefined) continue;
      busyBefore.push(await untilQuiet());
      if (side === null) ours.push(await ourRun());
      else
        await side.peer.run(levels).then(
          (run) => side.kept.runs.push(run),
          (error: Error) => {
            side.kept.failed = error.message;
          },
        );
    }
  }
  return { ours, peers: theirs, busy_before: busyBefore };
}
