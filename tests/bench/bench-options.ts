/** The command line of the bench. */
import { parseArgs } from 'node:util';

/** What a run of the bench measures. */
export interface BenchOptions {
  readonly quick: boolean;
  /** Names of parts; empty for all. */
  readonly only: readonly string[];
  /** Runs of the part `steps` on each side. */
  readonly rounds: number;
  /** Release lines or paths of binaries; empty for the Node of this process. */
  readonly nodes: readonly string[];
}

/** Text to print instead of a run. `problem` is null for `--help`. */
export interface Usage {
  readonly problem: string | null;
  readonly usage: string;
}

/**
 * Reads the command line.
 * @param args without the program.
 * @param parts names of all parts.
 */
export function readBenchOptions(args: readonly string[], parts: readonly string[]): BenchOptions | Usage {
  const usage = [
    'npm run bench -- [--quick] [--only PART,…] [--node NODE,…] [--rounds N]',
    '',
    '  --quick    a fifth of the turns and one run, to try the command',
    `  --only     measures these parts only: ${parts.join(', ')}`,
    '  --node     repeats the run on each Node: a release line, such as 24, or the path of a binary',
    '  --rounds   runs of the part steps on each side, 1 to 100 (4)',
    '',
    'docs/performance.md describes the parts, the tables, and COX_BENCH_PEERS.',
  ].join('\n');
  const refused = (problem: string | null): Usage => ({ problem, usage });
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return refused((error as Error).message);
  }
  if (values.help) return refused(null);
  const only = values.only.flatMap((names) => names.split(','));
  const unknown = only.filter((name) => !parts.includes(name));
  if (unknown.length > 0) return refused(`no such part: ${unknown.join(', ')}`);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 4));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100)
    return refused('--rounds takes a whole number from 1 to 100');
  return { quick: values.quick, only, rounds, nodes: values.node.flatMap((names) => names.split(',')) };
}

/** @throws TypeError for an unknown option, a missing or unexpected value, or an argument. */
function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      node: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  }).values;
}
