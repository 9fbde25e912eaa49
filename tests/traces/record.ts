/**
 * `npm run trace:record [-- NAME...]`: plays the named scenarios, or all, and replaces their traces. Without names it also
 * removes traces without a scenario, and records the example crews. Read the difference before you commit it: journals
 * of users will contain it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replayJournal } from '@coxswain/session';
import { recordCrews } from '../examples/record-crews.ts';
import { BROKEN_TRACES, breakTrace } from './broken-traces.ts';
import { recordTrace, type Trace } from './record-trace.ts';
import { keepFrozen, releasedVersions } from './released-traces.ts';
import { scenariosNamed } from './scenarios/all.ts';
import { goldenFiles, storedTraces, writeBroken, writeTraces } from './trace-files.ts';

const names = process.argv.slice(2);
const traces = new Map<string, Trace>();
for (const scenario of scenariosNamed(names)) {
  if (traces.has(scenario.name)) throw new Error(`two scenarios are named ${scenario.name}`);
  const trace = await recordTrace(scenario);
  // Nothing is written unless every trace can be replayed.
  await replayJournal(trace.records, { get: async (sha256) => trace.blobs.get(sha256) ?? null });
  traces.set(scenario.name, trace);
}
const replaced = goldenFiles();
await writeTraces(names.length === 0 ? traces : new Map([...storedTraces(), ...traces]));
keepFrozen(releasedVersions(readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8')), replaced);
await writeBroken(new Map(BROKEN_TRACES.map((broken) => [broken.name, breakTrace(broken)])));

let records = 0;
let bytes = 0;
for (const trace of traces.values()) {
  records += trace.records.length;
  for (const record of trace.records) bytes += record.length;
}
console.log(`${traces.size} traces recorded: ${records} records, ${Math.ceil(bytes / 1024)} KiB`);
if (names.length === 0) console.log(`${await recordCrews()} traces of example crews recorded`);
