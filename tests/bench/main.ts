/**
 * The bench; `npm run bench -- --help` prints its options. Prints each figure with its goal, writes all of them to `results/`,
 * and prints the table of the part `steps` as Markdown. docs/performance.md describes it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { NODE_VERSIONS, nodeFolder } from '../node-binaries.ts';
import { readBenchOptions } from './bench-options.ts';
import type { Part } from './bench-part.ts';
import { cancelLatency } from './cancel-latency.ts';
import { durableSteps } from './durable-steps.ts';
import { gatewayLatency } from './gateway-latency.ts';
import { hookConsult } from './hook-consult.ts';
import { idleSessions } from './idle-sessions.ts';
import { machineEvent } from './machine-event.ts';
import { problemOfPeers } from './peers.ts';
import { personaScaling } from './persona-scaling.ts';
import { plainTurn } from './plain-turn.ts';
import { recovery } from './recovery.ts';
import { measureAll, type Report } from './report.ts';
import { sessionGrowth } from './session-growth.ts';
import { startUp } from './start-up.ts';
import { steeringLatency } from './steering-latency.ts';
import { stepsTable } from './steps-table.ts';

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

const options = readBenchOptions(
  process.argv.slice(2),
  parts.map(({ name }) => name),
);
if ('usage' in options) {
  const { problem, usage } = options;
  if (problem !== null) refuse(`${problem}\n\n${usage}`);
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}
const { quick, only, rounds, nodes } = options;
const chosen = parts.filter((part) => only.length === 0 || only.includes(part.name));
if (chosen.includes(durableSteps)) {
  const problem = await problemOfPeers(process.env);
  if (problem !== null) refuse(problem);
}

const reports = nodes.length > 0 ? await onEachNode(nodes) : [await here()];
if (process.send) {
  // The process that chose this Node prints the table.
  process.send(reports[0]);
  process.disconnect();
} else {
  const table = stepsTable(reports);
  if (table !== '') process.stdout.write(`\n${table}\n`);
}
process.exitCode = reports.every(({ complete }) => complete) ? 0 : 1;

function here(): Promise<Report> {
  return measureAll(chosen, { quick, rounds }, chosen.length === parts.length);
}

/** Runs the whole bench once on each Node: its hosts, its driver and the peers. */
async function onEachNode(names: readonly string[]): Promise<Report[]> {
  const binaries: string[] = [];
  for (const name of names) binaries.push(await nodeBinary(name));
  const collected: Report[] = [];
  for (const binary of binaries) {
    const flags = [...(quick ? ['--quick'] : []), ...only.flatMap((name) => ['--only', name])];
    const child = spawn(binary, [...process.execArgv, import.meta.filename, ...flags, '--rounds', String(rounds)], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    });
    let report: Report | undefined;
    child.on('message', (message) => {
      report = message as Report;
    });
    const [code, signal] = await once(child, 'close');
    if (!report) throw new Error(`the bench on ${binary} ended with ${signal ?? code} before it reported`);
    collected.push(report);
  }
  return collected;
}

/** @param name a supported release line, which is installed if it is not there, or the path of a binary. */
async function nodeBinary(name: string): Promise<string> {
  const version = NODE_VERSIONS.get(name);
  if (version) return join(await nodeFolder(version), 'node');
  if (!existsSync(name))
    refuse(`--node takes ${[...NODE_VERSIONS.keys()].join(', ')} or the path of a node binary, not ${name}`);
  return resolve(name);
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}
