/**
 * Two builds of `cox` for tests of upgrades.
 *
 * Real: two different programs, as processes of their own, on one server.
 * Simulated, as long as no release exists: the difference between them. `released` is the bundle of this source. `next` is a
 * bundle of the same source in which a plugin of the bundler raises versions. No setting of a shipped program does this.
 *
 * `COX_UPGRADE_FROM=<main.mjs of an installed release>` makes it real: `released` is that program, `next` is this source.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { bundledVariant } from './bundled.ts';
import { COX_MAIN, REPOSITORY } from './child.ts';

/** A build of `cox`: the path of its program. */
export interface Build {
  readonly name: string;
  readonly main: string;
}

/** One constant of one source file, and its value in the next release. */
interface Raise {
  readonly file: string;
  readonly constant: RegExp;
  readonly raised: (value: string) => string;
}

const plusOne = (value: string) => String(Number(value) + 1);

/** A machine that decides the same under a higher version, and snapshots of another shape. */
const NEXT_MACHINE: readonly Raise[] = [
  {
    file: 'libs/turn/src/machine/version.ts',
    constant: /(?<=export const REPLAYED_VERSIONS: ReadonlySet<number> = new Set\(\[)MACHINE_VERSION/,
    raised: (own) => `${own} - 1, ${own}`,
  },
  {
    file: 'libs/turn/src/machine/version.ts',
    constant: /(?<=export const MACHINE_VERSION = )\d+/,
    raised: plusOne,
  },
  { file: 'libs/session/src/journal/load-session.ts', constant: /(?<=const SNAPSHOT_VERSION = )\d+/, raised: plusOne },
];
/** Records of a shape that earlier releases do not know; the step from theirs changes nothing else. */
const NEXT_RECORDS: readonly Raise[] = [
  { file: 'libs/protocol/src/journal/record.ts', constant: /(?<=export const RECORD_VERSION = )\d+/, raised: plusOne },
  {
    file: 'libs/protocol/src/journal/record-upcasts.ts',
    constant: /(?<=export const UPCASTS: ReadonlyMap<number, Upcast> = )new Map\(\)/,
    raised: () => 'new Map([[1, (record) => record]])',
  },
];

const RELEASED_MAIN = process.env.COX_UPGRADE_FROM ?? '';

/** Whether both builds come from this source. */
export const isSimulated = RELEASED_MAIN === '';

/** The release that an upgrade starts from. */
export const released: Build = { name: 'released', main: isSimulated ? COX_MAIN : RELEASED_MAIN };

/** The release that follows, with records of the same shape. */
export async function nextRelease(): Promise<Build> {
  return { name: 'next', main: isSimulated ? await bundledVariant('next', raising(NEXT_MACHINE)) : COX_MAIN };
}

/** A release that follows and writes records of a new shape. Always simulated. */
export async function nextRecordShape(): Promise<Build> {
  return { name: 'reshaped', main: await bundledVariant('reshaped', raising([...NEXT_MACHINE, ...NEXT_RECORDS])) };
}

/** @throws Error (in the bundler) naming the file, if a constant is not found: a variant without its change proves nothing. */
function raising(raises: readonly Raise[]): Plugin {
  return {
    name: 'raised-versions',
    setup({ onLoad }) {
      for (const file of new Set(raises.map((raise) => raise.file)))
        onLoad({ filter: new RegExp(`/${file.replaceAll('.', '\\.')}$`) }, async () => {
          let contents = await readFile(join(REPOSITORY, file), 'utf8');
          for (const { constant, raised } of raises.filter((raise) => raise.file === file)) {
            if (!constant.test(contents)) throw new Error(`${file} does not contain ${constant}`);
            contents = contents.replace(constant, raised);
          }
          return { contents, loader: 'ts' };
        });
    },
  };
}
