/** The command line of `npm run chaos`. */
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { CaseTable } from './case-table.ts';
import type { RunOptions, Scenario } from './scenario.ts';

export const USAGE = `npm run chaos -- --scenario NAME [--hosts N] [--workers N] [--sessions N] [--minutes N] [--replicas 1|3]
                        [--seed N] [--folder DIR]
npm run chaos -- --scenario TABLE   a table of cases on servers alone, without options
npm run chaos -- --list
npm run chaos -- --check DIR     checks the files of an earlier run again

--folder keeps the run's files there; without it they are kept only where a checker fails. Exit code 1: a checker failed.`;

/** What somebody typed that cannot be. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What is wanted. */
export type Wanted =
  | { readonly want: 'help' }
  | { readonly want: 'list' }
  | { readonly want: 'check'; readonly folder: string }
  | { readonly want: 'table'; readonly table: CaseTable }
  | {
      readonly want: 'run';
      readonly scenario: Scenario;
      readonly options: RunOptions;
      readonly folder: string | undefined;
    };

/** Bounds of what is counted; the number of sessions is bounded by what one machine can hold at all. */
const BOUNDS = {
  hosts: [1, 9],
  workers: [1, 9],
  sessions: [1, 10_000],
  minutes: [0.05, 24 * 60],
  seed: [0, 2 ** 32 - 1],
} as const;

/** Reads a command line. @throws UsageError */
export function wantedBy(
  argv: readonly string[],
  scenarios: readonly Scenario[],
  tables: readonly CaseTable[] = [],
): Wanted {
  const text = { type: 'string' } as const;
  const flags = {
    scenario: text,
    hosts: text,
    workers: text,
    sessions: text,
    minutes: text,
    replicas: text,
    seed: text,
    folder: text,
    check: text,
    list: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  const values = parsed(() => parseArgs({ args: [...argv], options: flags }).values);
  if (values.help) return { want: 'help' };
  if (values.list) return { want: 'list' };
  if (values.check !== undefined) {
    const folder = resolve(values.check);
    if (!existsSync(join(folder, 'history.jsonl')))
      throw new UsageError(`--check ${values.check}: no run has left its files there`);
    return { want: 'check', folder };
  }
  const table = tables.find(({ name }) => name === values.scenario);
  if (table) {
    if (Object.keys(values).length > 1) throw new UsageError(`${table.name} takes no options`);
    return { want: 'table', table };
  }
  const scenario = scenarios.find(({ name }) => name === values.scenario);
  if (!scenario) {
    const names = [...scenarios, ...tables].map(({ name }) => name).join(', ');
    throw new UsageError(
      `${values.scenario === undefined ? '--scenario is missing' : `no scenario is named ${values.scenario}`}; there are: ${names}`,
    );
  }
  const { defaults } = scenario;
  const folder = values.folder === undefined ? undefined : resolve(values.folder);
  if (folder !== undefined && existsSync(folder) && readdirSync(folder).length > 0)
    throw new UsageError(`--folder ${values.folder} is not empty`);
  return {
    want: 'run',
    scenario,
    folder,
    options: {
      hosts: count('hosts', values.hosts, defaults.hosts),
      workers: count('workers', values.workers, defaults.workers),
      sessions: count('sessions', values.sessions, defaults.sessions),
      minutes: number('minutes', values.minutes, defaults.minutes),
      seed: count('seed', values.seed, defaults.seed),
      replicas: replicas(values.replicas, defaults.replicas),
    },
  };
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function number(name: keyof typeof BOUNDS, typed: string | undefined, otherwise: number): number {
  if (typed === undefined) return otherwise;
  const value = Number(typed);
  const [least, most] = BOUNDS[name];
  if (typed.trim() === '' || !(value >= least && value <= most))
    throw new UsageError(`--${name} takes a number from ${least} to ${most}, not "${typed}"`);
  return value;
}

function count(name: keyof typeof BOUNDS, typed: string | undefined, otherwise: number): number {
  const value = number(name, typed, otherwise);
  if (!Number.isInteger(value)) throw new UsageError(`--${name} takes a whole number, not "${typed}"`);
  return value;
}

function replicas(typed: string | undefined, otherwise: 1 | 3): 1 | 3 {
  if (typed === undefined) return otherwise;
  if (typed === '1') return 1;
  if (typed === '3') return 3;
  throw new UsageError(`--replicas takes 1 or 3, not "${typed}"`);
}
