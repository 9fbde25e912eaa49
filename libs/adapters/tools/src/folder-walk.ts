/**
 * Walking a folder tree: sorted, depth first, symbolic links shown and never followed, each folder reached through
 * the open folder above it.
 */
import type { Dirent } from 'node:fs';
import type { OpenFolder } from './open-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { systemCode } from './tool-problem.ts';

/** One entry. `folder` is open until the walk goes on. */
export interface WalkEntry {
  readonly folder: OpenFolder;
  readonly name: string;
  /** Relative to where the walk began, with forward slashes. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** What a walk has not looked at, in words. */
export type WalkNotes = Set<string>;

/** Folders that hold what nobody wrote; looked into only where a walk begins in them. */
const NOT_LOOKED_INTO = new Set(['.git', 'node_modules']);

/** Walks a folder, which stays the caller's to close. Throws when the signal aborts. */
export async function* walk(
  start: OpenFolder,
  recursive: boolean,
  signal: AbortSignal,
  notes: WalkNotes,
): AsyncGenerator<WalkEntry, void> {
  let seen = 0;

  async function* below(folder: OpenFolder, prefix: string, depth: number): AsyncGenerator<WalkEntry, void> {
    for (const entry of await folder.entries()) {
      signal.throwIfAborted();
      if (++seen > TOOL_BOUNDS.walkEntriesMax) {
        notes.add(`stopped after ${TOOL_BOUNDS.walkEntriesMax} entries: start in a subfolder`);
        return;
      }
      const path = prefix + entry.name;
      const kind = kindOf(entry);
      yield { folder, name: entry.name, path, kind };
      if (!recursive || kind !== 'folder') continue;
      if (NOT_LOOKED_INTO.has(entry.name))
        notes.add(`${entry.name} folders are not searched; give one as path to search it`);
      else if (depth >= TOOL_BOUNDS.walkDepthMax) notes.add(`not searched, too deep: ${path}`);
      else yield* inFolder(folder, entry.name, path, depth);
    }
  }

  async function* inFolder(
    above: OpenFolder,
    name: string,
    path: string,
    depth: number,
  ): AsyncGenerator<WalkEntry, void> {
    let folder: OpenFolder;
    try {
      folder = await above.openFolder(name);
    } catch (error) {
      // It may be gone or be a link by now, or not be readable: said, and the walk goes on beside it.
      notes.add(`not searched: ${path}${systemCode(error) === 'EACCES' ? ' (permission denied)' : ''}`);
      return;
    }
    try {
      yield* below(folder, `${path}/`, depth + 1);
    } finally {
      await folder.close();
    }
  }

  yield* below(start, '', 0);
}

function kindOf(entry: Dirent): WalkEntry['kind'] {
  if (entry.isSymbolicLink()) return 'link';
  if (entry.isDirectory()) return 'folder';
  return entry.isFile() ? 'file' : 'other';
}

/** The notes as a tool shows them: bounded, one line each. */
export function shownNotes(notes: WalkNotes): string[] {
  const all = [...notes];
  const shown = all.slice(0, NOTES_SHOWN_MAX).map((note) => `[${note}]`);
  if (all.length > shown.length) shown.push(`[${all.length - shown.length} more notes of this kind]`);
  return shown;
}

const NOTES_SHOWN_MAX = 8;
