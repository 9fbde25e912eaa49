/**
 * Walks a folder tree: sorted, depth first. Symbolic links are listed and not followed. Each folder is opened through
 * its open parent.
 */
import type { Dirent } from 'node:fs';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { OpenFolder } from './open-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { systemCode } from './tool-problem.ts';

/** One entry. `folder` stays open until the walk continues. */
export interface WalkEntry {
  readonly folder: OpenFolder;
  readonly name: string;
  /** The path relative to the start of the walk, with forward slashes. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** Sentences about a walk and the parts that it has skipped. */
export class WalkNotes {
  readonly #sentences = new Set<string>();
  readonly #skipped: string[] = [];
  #moreSkipped = 0;

  /** Adds a sentence without a path. All of them are shown. */
  add(sentence: string): void {
    this.#sentences.add(sentence);
  }

  /** Adds a sentence about a skipped path. Only the first ones are kept: a walk may skip 200,000 long paths. */
  skip(sentence: string): void {
    if (this.#skipped.length < SKIPPED_SHOWN_MAX) this.#skipped.push(sentence);
    else this.#moreSkipped += 1;
  }

  /** The notes for a result, one line each. */
  get lines(): string[] {
    const more = this.#moreSkipped > 0 ? [`not searched: ${this.#moreSkipped} more paths`] : [];
    return [...this.#skipped, ...more, ...this.#sentences].map((note) => `[${note}]`);
  }
}

const SKIPPED_SHOWN_MAX = 8;

/** Folders whose content is not searched, unless a walk starts in them. */
const NOT_LOOKED_INTO = new Set(['.git', 'node_modules']);

/** Walks a folder, which the caller closes. Throws when the signal aborts. */
export async function* walk(
  start: OpenFolder,
  recursive: boolean,
  signal: AbortSignal,
  notes: WalkNotes,
): AsyncGenerator<WalkEntry, void> {
  let seen = 0;
  let charsSinceTurn = 0;

  async function* below(folder: OpenFolder, prefix: string, depth: number): AsyncGenerator<WalkEntry, void> {
    for (const entry of await folder.entries()) {
      if (charsSinceTurn >= TOOL_BOUNDS.walkTurnChars) {
        charsSinceTurn = 0;
        await nextTick();
      }
      signal.throwIfAborted();
      if (++seen > TOOL_BOUNDS.walkEntriesMax) {
        notes.add(`stopped after ${TOOL_BOUNDS.walkEntriesMax} entries: start in a subfolder`);
        return;
      }
      const path = prefix + entry.name;
      charsSinceTurn += path.length;
      const kind = kindOf(entry);
      yield { folder, name: entry.name, path, kind };
      if (!recursive || kind !== 'folder') continue;
      if (NOT_LOOKED_INTO.has(entry.name))
        notes.add(`${entry.name} folders are not searched; give one as path to search it`);
      else if (depth >= TOOL_BOUNDS.walkDepthMax) notes.skip(`not searched, too deep: ${path}`);
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
      // The folder may have been removed, replaced by a link, or not be readable. A note reports it, and the walk
      // continues.
      notes.skip(`not searched: ${path}${systemCode(error) === 'EACCES' ? ' (permission denied)' : ''}`);
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
