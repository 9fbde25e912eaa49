/**
 * The programs that tests start, bundled from the source as it stands, packages of others included: a process that loads
 * hundreds of files instead is busy most of a second before it begins.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join, parse } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Plugin } from 'esbuild';
import { bundle, root } from '../../../scripts/bundle.mjs';

/** By the name of their bundle: from the root of the repository. */
const PROGRAMS = {
  main: 'libs/cli/src/main.ts',
  'session-host': 'services/sessions/src/hosts/session-host.ts',
  'harbour-server': 'libs/cli/src/demo/harbour-server.ts',
  sessions: 'services/sessions/src/main.ts',
  standby: 'tests/e2e/kit/standby-main.ts',
  gateway: 'tests/e2e/kit/gateway-main.ts',
  runner: 'tests/e2e/kit/runner-main.ts',
  'left-behind': 'tests/e2e/kit/left-behind-main.ts',
  served: 'tests/e2e/kit/served-main.ts',
} as const;
/** Below the command line's own folder, so that packages are found as the shipped bundle finds them. */
const FOLDER = join(root, 'libs/cli/dist/tested');
/** A bundle of other source is taken away once no run can still need it. */
const KEPT_MS = 60 * 60 * 1_000;
/** A worker that ended while it made a bundle is waited for this long, and never again: the next one takes its sign away. */
const MAKING_MAX_MS = 60_000;

/** @returns the folder that holds each program as `<name>.mjs`; made once for all who find the same source. */
export function bundledPrograms(): Promise<string> {
  return bundled(fingerprint(), PROGRAMS, 'inside');
}

/**
 * Bundles `cox` from source that a plugin changes. Packages of others are not bundled: that takes two thirds of the time, and
 * few processes run such a program.
 * @param name of the change: one that is bundled already is not bundled again.
 * @returns the path of the program.
 */
export async function bundledVariant(name: string, change: Plugin): Promise<string> {
  return join(await bundled(`${fingerprint()}-${name}`, { main: PROGRAMS.main }, 'stay', [change]), 'main.mjs');
}

/**
 * Bundles a program of a user: next to its source, as it may read files from there.
 * @param source the path of a TypeScript file. The packages of this repository are found from any folder.
 * @returns the path of the bundle.
 */
export async function bundledProgram(source: string): Promise<string> {
  const { dir, name } = parse(source);
  for (const { path, contents } of await bundle({ [`${name}.bundled`]: source }, dir, 'inside'))
    await writeFile(path, contents);
  return join(dir, `${name}.bundled.mjs`);
}

async function bundled(
  name: string,
  programs: Readonly<Record<string, string>>,
  vendors: 'stay' | 'inside',
  plugins: readonly Plugin[] = [],
): Promise<string> {
  const folder = join(FOLDER, name);
  if (existsSync(folder)) return folder;
  // The workers of a run need the same programs at the same time. The first one makes them.
  const making = `${folder}.making`;
  mkdirSync(FOLDER, { recursive: true });
  const isFirst = await mkdir(making).then(
    () => true,
    () => false,
  );
  for (const end = Date.now() + MAKING_MAX_MS; !isFirst && existsSync(making) && Date.now() < end; )
    await setTimeout(50);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`;
  try {
    mkdirSync(unfinished);
    for (const { path, contents } of await bundle(programs, unfinished, vendors, plugins))
      writeFileSync(join(unfinished, basename(path)), contents);
    renameSync(unfinished, folder);
  } catch (error) {
    // Another worker, which did not wait any longer, was quicker.
    if (!existsSync(folder)) throw error;
  } finally {
    for (const rest of [unfinished, making]) rmSync(rest, { recursive: true, force: true });
  }
  for (const name of readdirSync(FOLDER)) {
    const other = join(FOLDER, name);
    const madeMs = statSync(other, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - madeMs > KEPT_MS) rmSync(other, { recursive: true, force: true });
  }
  return folder;
}

/** Changes whenever a source file does. */
function fingerprint(): string {
  const hash = createHash('sha256');
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!['node_modules', 'dist', 'test'].includes(entry.name)) visit(path);
      } else {
        const { mtimeMs, size } = statSync(path);
        hash.update(`${path} ${mtimeMs} ${size}\n`);
      }
    }
  };
  for (const folder of ['libs', 'services', 'tests/e2e/kit', 'scripts']) visit(join(root, folder));
  return hash.digest('hex').slice(0, 16);
}
