/** Rules for imports between the files of one project: slices of the turn machine, and rooms. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';

/**
 * Projects whose folders in `src` are rooms. Tests, and the other rooms, import what the `mod.ts` of a room lists. An
 * `import()` may name any file, so that a command loads no more than it needs.
 */
export const PROJECTS_WITH_ROOMS: ReadonlySet<string> = new Set(['libs/cli', 'services/gateway']);

/** A violation of a rule, with its position. */
export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
}

/** An import of one file of a project by another. Paths are relative to the workspace root. */
export interface Arrow {
  readonly file: string;
  readonly line: number;
  readonly target: string;
  readonly isDynamic: boolean;
}

/** The import of `specifier`, which is relative to the file. */
export function arrowOf(file: string, specifier: string, line: number, isDynamic: boolean): Arrow {
  return { file, line, target: join(dirname(file), specifier).split(sep).join('/'), isDynamic };
}

/** Imports of a file in `src` by a test, other than a `mod.ts`. */
export function brokenTests(root: string, arrows: readonly Arrow[]): Violation[] {
  return arrows
    .filter(({ target }) => target.startsWith(`${root}/src/`) && basename(target) !== 'mod.ts')
    .map(({ file, line, target }) => ({ file, line, rule: `a test may import only a mod.ts, not ${target}` }));
}

/** Imports of a room's file by another room, past its `mod.ts`. The program itself starts with as few files as possible. */
export function brokenRooms(workspaceRoot: string, root: string, arrows: readonly Arrow[]): Violation[] {
  const roomOf = (path: string) => dirname(relative(`${root}/src`, path)).split(sep)[0] ?? '.';
  return arrows
    .filter(({ file, target, isDynamic }) => {
      const room = roomOf(target);
      if (isDynamic || room === '.' || room === roomOf(file) || file === `${root}/src/main.ts`) return false;
      return basename(target) !== 'mod.ts' && existsSync(join(workspaceRoot, root, 'src', room, 'mod.ts'));
    })
    .map(({ file, line, target }) => ({
      file,
      line,
      rule: `another room may import only ${root}/src/${roomOf(target)}/mod.ts, not ${target}`,
    }));
}

/** Imports of a dispatch table by a slice of the turn machine. Tables call slices; a slice may not import a table. */
export function brokenSlices(root: string, arrows: readonly Arrow[]): Violation[] {
  const isTable = (path: string) => /\/src\/core\/(decide|evolve|evolve-\w+|next|effects|timers)\.ts$/.test(path);
  return arrows
    .filter(({ file, target }) => file.startsWith(`${root}/src/slices/`) && isTable(target))
    .map(({ file, line, target }) => ({ file, line, rule: `a slice may not import ${target}` }));
}

/** Imports that close a cycle, of values or of types. A cycle is reported at the import that closes it. */
export function cycles(arrows: readonly Arrow[]): Violation[] {
  const from = new Map<string, Arrow[]>();
  for (const arrow of arrows) from.set(arrow.file, [...(from.get(arrow.file) ?? []), arrow]);
  const found: Violation[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    if (done.has(file)) return;
    path.push(file);
    for (const { line, target } of from.get(file) ?? []) {
      const start = path.indexOf(target);
      if (start < 0) visit(target);
      else found.push({ file, line, rule: `import cycle: ${[...path.slice(start), target].join(' → ')}` });
    }
    path.pop();
    done.add(file);
  };
  for (const file of from.keys()) visit(file);
  return found;
}
