/**
 * A folder held open, and the names in it.
 *
 * O1: On Linux every name is reached through the open descriptor (`/proc/self/fd/<n>/<name>`), so that a folder that
 *     is renamed or replaced by a link after it was opened is not walked through again.
 * O2: The last component is never followed if it is a symbolic link.
 * O3: Where there is no /proc, names are reached by path, and what was opened is compared with what the path leads to
 *     afterwards. A link that is swapped in and out again within that moment can make an empty file elsewhere; no byte
 *     is read or written there.
 */
import { type Dirent, existsSync, constants as fs, type Stats } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { systemCode, ToolProblem } from './tool-problem.ts';

/** How names below a folder are reached: through its descriptor, or by path. */
export type Anchoring = 'descriptor' | 'path';

/** What this system can do. */
export const SYSTEM_ANCHORING: Anchoring =
  process.platform === 'linux' && existsSync('/proc/self/fd') ? 'descriptor' : 'path';

/** Whether a path is a folder or lies below it; both absolute and normal. */
export function isInside(folder: string, path: string): boolean {
  if (path === folder) return true;
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** The refusal of a path that leads out, with the path as the model wrote it. */
export function outsideRoot(path: string, why: string): ToolProblem {
  return new ToolProblem('outside_root', `${JSON.stringify(path)} ${why}; only files inside the root can be used`, {
    path,
  });
}

/** Where a session may open something: in its root, but nothing that belongs to the host. */
export interface Confines {
  /** Real path. */
  readonly root: string;
  /** Whether a real path belongs to the host itself. */
  readonly isRefused: (real: string) => boolean;
}

/** The refusal of a path that belongs to the host. */
export function hostsOwn(path: string): ToolProblem {
  return new ToolProblem('outside_root', `${JSON.stringify(path)} belongs to the host; no session can open it`, {
    path,
  });
}

/** Opens a file or folder by its real path and makes sure that what is open lies inside the root. */
export async function openVerified(
  { root, isRefused }: Confines,
  real: string,
  flags: number,
  anchoring: Anchoring,
  mode?: number,
  at: string = real,
): Promise<FileHandle> {
  const handle = await openUnfollowed(root, real, flags, mode, at);
  try {
    if (anchoring === 'descriptor') {
      const opened = await readlink(`/proc/self/fd/${handle.fd}`);
      if (!isInside(root, opened)) throw changed(root, real);
      if (isRefused(opened)) throw hostsOwn(relative(root, real) || '.');
    } else {
      const [now, opened, found] = [await realpath(real), await handle.stat(), await stat(real)];
      if (now !== real || !isInside(root, now)) throw changed(root, real);
      if (opened.dev !== found.dev || opened.ino !== found.ino) throw changed(root, real);
      if (isRefused(now)) throw hostsOwn(relative(root, real) || '.');
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function openUnfollowed(
  root: string,
  real: string,
  flags: number,
  mode: number | undefined,
  at: string,
): Promise<FileHandle> {
  try {
    // Not blocking, because opening a pipe to read waits for a writer.
    return await open(at, flags | fs.O_NOFOLLOW | fs.O_NONBLOCK, mode);
  } catch (error) {
    // A link now stands where there was none: ELOOP, or ENOTDIR where a folder was asked for.
    if (systemCode(error) === 'ELOOP') throw changed(root, real);
    if (systemCode(error) === 'ENOTDIR' && (flags & fs.O_DIRECTORY) !== 0) {
      const found = await lstat(at);
      if (found.isSymbolicLink()) throw changed(root, real);
    }
    throw error;
  }
}

function changed(root: string, real: string): ToolProblem {
  return outsideRoot(relative(root, real) || '.', 'was replaced by a symbolic link while it was being opened');
}

/** A folder held open. Whoever opened it closes it. */
export class OpenFolder {
  readonly #handle: FileHandle;
  readonly #confines: Confines;
  readonly #anchoring: Anchoring;
  /** Real path at the time of opening; for showing, and for `cwd`. */
  readonly path: string;

  private constructor(confines: Confines, path: string, handle: FileHandle, anchoring: Anchoring) {
    this.#confines = confines;
    this.path = path;
    this.#handle = handle;
    this.#anchoring = anchoring;
  }

  /** Opens a folder by its real path. */
  static async open(confines: Confines, real: string, anchoring: Anchoring): Promise<OpenFolder> {
    const handle = await openVerified(confines, real, fs.O_RDONLY | fs.O_DIRECTORY, anchoring);
    return new OpenFolder(confines, real, handle, anchoring);
  }

  /** Opens a folder in this folder; a link is refused. */
  async openFolder(name: string): Promise<OpenFolder> {
    const handle = await this.openFile(name, fs.O_RDONLY | fs.O_DIRECTORY);
    return new OpenFolder(this.#confines, join(this.path, name), handle, this.#anchoring);
  }

  /** Opens a name in this folder with the flags of open(2); a link is refused. */
  async openFile(name: string, flags: number, mode?: number): Promise<FileHandle> {
    await this.#stillHere();
    return openVerified(this.#confines, join(this.path, name), flags, this.#anchoring, mode, this.#at(name));
  }

  /** What stands under a name, links not followed; null where nothing does. */
  async look(name: string): Promise<Stats | null> {
    try {
      return await lstat(this.#at(name));
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null;
      throw error;
    }
  }

  /** Makes a folder unless there is one. */
  async makeFolder(name: string): Promise<void> {
    await this.#stillHere();
    try {
      await mkdir(this.#at(name));
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }

  /** Puts one name of this folder in the place of another. A link in that place is replaced, not followed. */
  async replace(from: string, to: string): Promise<void> {
    this.#expectOurs(to);
    await this.#stillHere();
    await rename(this.#at(from), this.#at(to));
  }

  /** Removes a file. */
  async remove(name: string): Promise<void> {
    this.#expectOurs(name);
    await unlink(this.#at(name));
  }

  /** The folder's entries, sorted by name. Refuses a folder with more than the bound. */
  async entries(): Promise<Dirent[]> {
    await this.#stillHere();
    const found: Dirent[] = [];
    const at = this.#anchoring === 'descriptor' ? `/proc/self/fd/${this.#handle.fd}` : this.path;
    for await (const entry of await opendir(at)) {
      found.push(entry);
      if (found.length > TOOL_BOUNDS.folderEntriesMax) {
        throw new ToolProblem(
          'tool_failed',
          `${relative(this.#confines.root, this.path) || '.'} has more than ${TOOL_BOUNDS.folderEntriesMax} entries`,
        );
      }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #expectOurs(name: string): void {
    const { root, isRefused } = this.#confines;
    const path = join(this.path, name);
    if (isRefused(path)) throw hostsOwn(relative(root, path));
  }

  #at(name: string): string {
    if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0')) {
      throw new Error(`invalid entry name: ${JSON.stringify(name)}`);
    }
    return this.#anchoring === 'descriptor' ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.path, name);
  }

  /** By path there is nothing that holds the folder in its place, so it is looked at before each use. (O3) */
  async #stillHere(): Promise<void> {
    if (this.#anchoring === 'path' && (await realpath(this.path)) !== this.path)
      throw changed(this.#confines.root, this.path);
  }
}

/** Reads up to `length` bytes from a position; fewer only at the end of the file. */
export async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
