/** The example crews, from their own command lines: what `run.sh` makes and says is what is played here. */
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '@coxswain/protocol';
import { COMMANDS } from '../../libs/cli/src/line/command-table.ts';
import { parseLine } from '../../libs/cli/src/line/parse-line.ts';
import { startBody } from '../../libs/cli/src/run/start-body.ts';
import { cleanEnv } from '../e2e/kit/clean-env.ts';

const run = promisify(execFile);
/** The example crews. */
export const CREWS = resolve(import.meta.dirname, '../../examples/crews');
const SCRIPT = 'script.yaml';

/** An example in a folder of its own, prepared as its `run.sh` prepares it. */
export interface PreparedCrew {
  readonly folder: string;
  /** The folder that its sessions work in. */
  readonly root: string;
  /** What `cox run` would send, with a script of no place. */
  readonly start: JsonObject;
  /** Of its script. */
  readonly model: string;
}

/** Copies an example to a folder, and lets its `run.sh` do all but run. */
export async function prepareCrew(name: string, scratch: string): Promise<PreparedCrew> {
  const folder = join(scratch, name);
  await cp(join(CREWS, name), folder, {
    recursive: true,
    filter: (path) => !path.endsWith('/work'),
  });
  // Replaces cox: writes down what it is asked to run, a line for each argument, and says what a run.sh waits for.
  const asked = join(scratch, `${name}.asked`);
  await mkdir(join(scratch, 'bin'), { recursive: true });
  const programs = {
    cox: `case $1 in run) printf '%s\\n' "$@" >'${asked}' ;; tool) echo 'refund ' ;; esac`,
    npx: 'exec "$@"',
  };
  for (const [name, does] of Object.entries(programs)) {
    const program = join(scratch, 'bin', name);
    await writeFile(program, `#!/bin/sh\n${does}\n`);
    await chmod(program, 0o755);
  }
  await run(join(folder, 'run.sh'), [], { env: cleanEnv({ PATH: `${join(scratch, 'bin')}:${process.env.PATH}` }) });

  const argv = (await readFile(asked, 'utf8')).trimEnd().split('\n');
  const line = parseLine(argv, COMMANDS);
  if (line.kind !== 'command') throw new Error(`${name}: run.sh does not run anything`);
  const env = { INIT_CWD: folder, COX_MODEL: `scripted/${SCRIPT}` };
  const { root, ...start } = await startBody({ flags: line.flags, env }, line.args[0] as string);
  const model = `scripted/${SCRIPT}`;
  return { folder, root: String(root), start: { ...(start as JsonObject), model }, model };
}
