/**
 * The bench: `npm run bench [-- --quick] [--only <part>[,<part>]]`. Prints each figure with its goal and
 * writes all of them to `results/`. With `COX_BENCH_PEERS` naming a folder of peers, Restate runs the same workload in turn with us.
 */
import { parseArgs } from 'node:util';
import type { Part } from './bench-part.ts';
import { cancelLatency } from './cancel-latency.ts';
import { durableSteps } from './durable-steps.ts';
import { gatewayLatency } from './gateway-latency.ts';
import { hookConsult } from './hook-consult.ts';
import { idleSessions } from './idle-sessions.ts';
import { machineEvent } from './machine-event.ts';
import { personaScaling } from './persona-scaling.ts';
import { plainTurn } from './plain-turn.ts';
import { recovery } from './recovery.ts';
import { measureAll } from './report.ts';
import { sessionGrowth } from './session-growth.ts';
import { startUp } from './start-up.ts';
import { steeringLatency } from './steering-latency.ts';

const parts: readonly Part[] = [
  plainTurn,
  machineEvent,
  sessionGrowth,
  steeringLatency,
  cancelLatency,
  hookConsult,
  startUp,
  recovery,
  idleSessions,
  durableSteps,
  personaScaling,
  gatewayLatency,
];

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true, default: [] } },
});
const only = values.only.flatMap((names) => names.split(','));
const unknown = only.filter((name) => !parts.some((part) => part.name === name));
if (unknown.length > 0) {
  process.stderr.write(
    `no such part: ${unknown.join(', ')}; there are: ${parts.map((part) => part.name).join(', ')}\n`,
  );
  process.exit(2);
}
const chosen = parts.filter((part) => only.length === 0 || only.includes(part.name));
const complete = await measureAll(chosen, { quick: values.quick }, chosen.length === parts.length);
process.exitCode = complete ? 0 : 1;
