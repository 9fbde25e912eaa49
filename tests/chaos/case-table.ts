/** A scenario that is a table of short cases on servers alone: no hosts, no clients, no nemesis. It has no options. */

/** See the top of the file. */
export interface CaseTable {
  readonly name: string;
  /** One line for `--list`. */
  readonly about: string;
  readonly cases: readonly Case[];
}

/** One case. Runs for about a minute. */
export interface Case {
  /** What distinguishes it from the others. */
  readonly name: string;
  /** Carries it out. */
  run(): Promise<CaseOutcome>;
}

/** What a case showed. */
export interface CaseOutcome {
  /** Counts, one line for each server. */
  readonly lines: readonly string[];
  readonly isSound: boolean;
}

/**
 * Carries out all cases of a table, one after another. A case that cannot be carried out is not sound.
 * @param say called with each line of the report as it is known.
 * @returns whether all are sound.
 */
export async function runCaseTable({ cases }: CaseTable, say: (line: string) => void): Promise<boolean> {
  let areSound = true;
  for (const { name, run } of cases) {
    const { lines, isSound } = await run().catch((error: Error) => ({ lines: [String(error.stack)], isSound: false }));
    say(`${name.padEnd(66)} ${isSound ? 'holds' : 'DATA LOST'}`);
    for (const line of lines) say(`    ${line}`);
    areSound &&= isSound;
  }
  return areSound;
}
