/** The tables of the part `steps` as Markdown, for the documentation. */
import { median, range, shown } from './figures.ts';
import { QUIET_AT_MOST } from './quiet-machine.ts';
import type { Report } from './report.ts';
import { LEVELS, type Level, OF_RAW, type StepsRuns } from './steps-runs.ts';

type StepsReport = Report & { readonly steps: NonNullable<Report['steps']> };

/** @param reports one for each Node version. Those without the part `steps` have no rows; without any the text is empty. */
export function stepsTable(reports: readonly Report[]): string {
  const measured = reports.filter((report): report is StepsReport => report.steps !== undefined);
  if (measured.length === 0) return '';
  const peers = [...new Set(measured.flatMap(({ steps }) => steps.peers.map(({ name }) => name)))];
  const compared = [
    row(['Node', 'sessions', 'Coxswain', ...peers.flatMap((name) => [name, `÷ ${name}`]), 'goal']),
    row(Array(4 + 2 * peers.length).fill('---')),
    ...measured.flatMap((report) => LEVELS.map((level) => comparedRow(report, level, peers))),
  ];
  const warm = [
    row(['Node', 'sessions', 'Coxswain, warm', 'raw appends of one client', '÷ raw', 'goal', 'host CPU per step']),
    row(Array(7).fill('---')),
    ...measured.flatMap((report) => LEVELS.map(({ sessions }) => warmRow(report, sessions))),
  ];
  return [measured.map(circumstances).join('\n'), compared.join('\n'), warm.join('\n')].join('\n\n');
}

function circumstances({ steps, ...report }: StepsReport): string {
  const busiest = Math.max(...steps.busy_before);
  const busy = busiest > QUIET_AT_MOST ? ['**Busy machine: do not publish.**'] : [];
  const quick = report.quick ? ['**Quick run: do not publish.**'] : [];
  const failed = steps.peers
    .filter((peer) => peer.failed !== undefined)
    .map(({ name, runs }) => `**${name} failed after ${runs.length} runs: do not publish its figures.**`);
  const servers = [...new Set(steps.ours.map(({ server }) => `nats-server ${server}`))];
  const theirs = steps.peers.flatMap(({ name, runs }) => {
    const [run] = runs;
    if (!run) return [];
    const versions = Object.entries(run.versions).map(([what, version]) => `${what} ${version}`);
    return [`${name} on Node ${run.machine.node.slice(1)} (${versions.join(', ')}; ${run.durability})`];
  });
  return [
    ...busy,
    ...quick,
    ...failed,
    `${report.at.slice(0, 10)}, commit \`${report.commit}\`${report.changed ? ' with changes' : ''}.`,
    `${report.cpus} cores (${report.cpu}), ${report.memory_gib} GiB.`,
    `Node ${report.node.slice(1)}; ${[...servers, ...theirs].join('; ')}.`,
    `Steps per second: medians of ${steps.ours.length} runs in rotation, with the lowest and the highest.`,
    `Load average ${shown(steps.load[0])} before and ${shown(steps.load[1])} after;`,
    `at most ${Math.round(busiest * 100)} % of the CPU time was in use before a run.`,
  ].join(' ');
}

function comparedRow({ node, steps }: StepsReport, { sessions, ofRestate }: Level, peers: readonly string[]): string {
  const ours = steps.ours.flatMap((run) => run.started[sessions]?.steps_s ?? []);
  const compared = peers.flatMap((name) => {
    const theirs = figuresOfPeer(steps, name, sessions);
    if (theirs.length === 0) return ['', ''];
    return [withRange(theirs), shown(median(ours) / median(theirs))];
  });
  const restate = figuresOfPeer(steps, 'Restate', sessions);
  const isMissed = restate.length > 0 && median(ours) / median(restate) < ofRestate;
  const goal = `${ofRestate} × Restate`;
  return row([node.slice(1), sessions, withRange(ours), ...compared, isMissed ? `**${goal}**` : goal]);
}

function figuresOfPeer({ peers }: StepsRuns, name: string, sessions: number): number[] {
  return peers
    .filter((peer) => peer.name === name)
    .flatMap(({ runs }) => runs.flatMap((run) => run[`c${sessions}`]?.steps_s ?? []));
}

function warmRow({ node, steps }: StepsReport, sessions: number): string {
  const levels = steps.ours.flatMap((run) => run.warm[sessions] ?? []);
  const share = median(levels.map((level) => level.steps_s / level.raw_appends_s));
  return row([
    node.slice(1),
    sessions,
    withRange(levels.map((level) => level.steps_s)),
    withRange(levels.map((level) => level.raw_appends_s)),
    shown(share),
    share < OF_RAW ? `**${OF_RAW}**` : OF_RAW,
    `${withRange(levels.map((level) => level.host_cpu_us_per_step))} µs`,
  ]);
}

function withRange(samples: readonly number[]): string {
  return `${shown(median(samples))} (${range(samples)})`;
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}
