/** From a scenario to a trace: plays it, and keeps the bytes of its journal. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@coxswain/ports';
import { blobRefsOf } from '@coxswain/protocol';
import type { Scenario } from './scenario.ts';
import { SCRIPT, Stage } from './stage.ts';
import type { StageBus } from './stage-bus.ts';

/** A journal as it is kept in a file, and the bytes that are kept beside it. */
export interface Trace {
  /** The records, as they were stored. */
  readonly records: readonly Uint8Array[];
  /** What the records refer to, by SHA-256. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

/**
 * Plays a scenario.
 * @param heedsInjections false for its control: the same run with nothing queued.
 * @param makeBus the bus that it is played on; one in memory by default.
 */
export async function recordTrace(
  scenario: Scenario,
  heedsInjections = true,
  makeBus?: (clock: Clock) => StageBus,
): Promise<Trace> {
  const folder = await mkdtemp(join(tmpdir(), 'trace-'));
  // JSON is YAML, which is what a script is written in.
  await writeFile(
    join(folder, SCRIPT),
    JSON.stringify({ turns: scenario.turns, compactions: scenario.compactions ?? [] }),
  );
  const stage = new Stage(scenario, folder, heedsInjections, makeBus);
  try {
    await stage.readScript();
    await scenario.play(stage);
    const records = await stage.records(scenario.session);
    // A start that is rejected leaves no record, and a trace without one would replay for ever.
    if (records.length === 0) throw new Error(`${scenario.name}: the session was never started`);
    const blobs = new Map<string, Uint8Array>();
    for (const { sha256 } of records.flatMap((bytes) => blobRefsOf(bytes))) {
      const bytes = await stage.bus.blobs.get(sha256);
      if (!bytes) throw new Error(`${scenario.name}: the blob ${sha256} is missing`);
      blobs.set(sha256, bytes);
    }
    return { records, blobs };
  } finally {
    stage.close();
    await rm(folder, { recursive: true });
  }
}
