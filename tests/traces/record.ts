/**
 * `npm run trace:record`: plays every scenario and puts what it recorded in the place of the traces that there are.
 * Read the difference before it is committed: it is what journals of users will look like from now on.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replayJournal } from '@coxswain/session';
import { recordCrews } from '../examples/record-crews.ts';
import { BROKEN_TRACES, breakTrace } from './broken-traces.ts';
import { recordTrace, type Trace } from './record-trace.ts';
import { keepFrozen, releasedVersions } from './released-traces.ts';
import { SCENARIOS } from './scenarios/all.ts';
import { goldenFiles, writeBroken, writeTraces } from './trace-files.ts';

const traces = new Map<string, Trace>();
for (const scenario of SCENARIOS) {
  if (traces.has(scenario.name)) throw new Error(`two scenarios are named ${scenario.name}`);
  const trace = await recordTrace(scenario);
  // Nothing is written unless all of it can be read again.
  await replayJournal(trace.records, { get: async (sha256) => trace.blobs.get(sha256) ?? null });
  traces.set(scenario.name, trace);
}
const replaced = goldenFiles();
await writeTraces(traces);
keepFrozen(releasedVersions(readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8')), replaced);
await writeBroken(new Map(BROKEN_TRACES.map((broken) => [broken.name, breakTrace(broken)])));

let records = 0;
let bytes = 0;
for (const trace of traces.values()) {
  records += trace.records.length;
  for (const record of trace.records) bytes += record.length;
}
console.log(`${traces.size} traces recorded: ${records} records, ${Math.ceil(bytes / 1024)} KiB`);
console.log(`${await recordCrews()} traces of example crews recorded`);
