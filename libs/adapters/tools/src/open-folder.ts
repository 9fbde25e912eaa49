/**
 * An open folder, and the entries in it.
 *
 * O1: On Linux every entry is reached through the open descriptor (`/proc/self/fd/<n>/<name>`). So a folder that is
 * renamed or replaced by a link after opening is not resolved again.
 * O2: A symbolic link as the last component is not followed.
 * O3: Without /proc, entries are reached by path. After opening, the opened file is compared with the file at the path.
 * A link that is swapped in and out within that moment can create an empty file elsewhere. No byte is read or written
 * there.
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

/** How entries of a folder are reached: through its descriptor, or by path. */
export type Anchoring = 'descriptor' | 'path';

/** The anchoring of this system. */
export const SYSTEM_ANCHORING: Anchoring =
  process.platform === 'linux' && existsSync('/proc/self/fd') ? 'descriptor' : 'path';

/** Whether a path is a folder or is below it. Both paths are absolute and normalized. */
export function isInside(folder: string, path: string): boolean {
  if (path === folder) return true;
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** The error for a path that leads out of the root, with the path as the model wrote it. */
export function outsideRoot(path: string, why: string): ToolProblem {
  return new ToolProblem('outside_root', `${JSON.stringify(path)} ${why}; only files inside the root can be used`, {
    path,
  });
}

/** The files that a session may open: those in its root, except files that belong to the host. */
export interface Confines {
  /** The real path of the root. */
  readonly root: string;
  /** Whether a real path belongs to the host itself. */
  readonly isRefused: (real: string) => boolean;
}

/** The error for a path that belongs to the host. */
export function hostsOwn(path: string): ToolProblem {
  return new ToolProblem('outside_root', `${JSON.stringify(path)} belongs to the host; no session can open it`, {
    path,
  });
}

/** Opens a file or folder by its real path. Verifies that it is in the root and does not belong to the host. */
export async function openVerified(
  { root, isRefused }: Confines,
  real: string,
  flags: number,
  anchoring: Anchoring,
  mode?: number,
  at: string = real,
): Promise<FileHandle> {
  // Before opening, which may create or empty a file. It is checked again afterwards, because the path may have changed.
  if (isRefused(real)) throw hostsOwn(relative(root, real) || '.');
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
    // Non-blocking, because opening a pipe for reading waits for a writer.
    return await open(at, flags | fs.O_NOFOLLOW | fs.O_NONBLOCK, mode);
  } catch (error) {
    // A link has replaced the file or folder: ELOOP, or ENOTDIR with O_DIRECTORY.
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

/** An open folder. The caller that opens it closes it. */
export class OpenFolder {
  readonly #handle: FileHandle;
  readonly #confines: Confines;
  readonly #anchoring: Anchoring;
  /** The real path at the time of opening, for messages and for `cwd`. */
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

  /** Opens a subfolder. A link is rejected. */
  async openFolder(name: string): Promise<OpenFolder> {
    const handle = await this.openFile(name, fs.O_RDONLY | fs.O_DIRECTORY);
    return new OpenFolder(this.#confines, join(this.path, name), handle, this.#anchoring);
  }

  /** Opens an entry with the flags of open(2). A link is rejected. */
  async openFile(name: string, flags: number, mode?: number): Promise<FileHandle> {
    await this.#stillHere();
    return openVerified(this.#confines, join(this.path, name), flags, this.#anchoring, mode, this.#at(name));
  }

  /** The properties of an entry, without following links; null if it does not exist. */
  async look(name: string): Promise<Stats | null> {
    try {
      return await lstat(this.#at(name));
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null;
      throw error;
    }
  }

  /** Creates a subfolder, unless the name exists. */
  async makeFolder(name: string): Promise<void> {
    this.#expectOurs(name);
    await this.#stillHere();
    try {
      await mkdir(this.#at(name));
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }

  /** Renames one entry to the name of another, and replaces that. A link with that name is replaced, not followed. */
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

  /** The folder's entries, sorted by name. Throws for a folder with more entries than the limit. */
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

  /** A path does not keep the folder in its place, so it is checked before each use. (O3) */
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
