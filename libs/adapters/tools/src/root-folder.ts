/**
 * The root folder of a session, which file tools cannot leave.
 *
 * R1: Every path is normalized and resolved through all its links before it is used, and must then be in the root.
 * R2: An opened file is checked again, because a link may have been swapped in between (O1, O3).
 * R3: A broken link is rejected: a file created through it would be at the link's target.
 * R4: Files of the host itself are rejected, even in a root that contains them.
 * R5: Hard links are ordinary files: it is unknown which of their names is outside.
 */

import { constants as fs } from 'node:fs';
import { type FileHandle, lstat, realpath as realpathOf } from 'node:fs/promises';
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { type HostRules, isRefused, OPEN_RULES } from '@coxswain/protocol';
import {
  type Anchoring,
  type Confines,
  hostsOwn,
  isInside,
  OpenFolder,
  openVerified,
  outsideRoot,
  SYSTEM_ANCHORING,
} from './open-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { systemCode, systemProblem, ToolProblem } from './tool-problem.ts';

/** The system functions of a root. A test can replace them to act between the check and the use. */
export interface RootSystem {
  readonly realpath: (path: string) => Promise<string>;
  readonly anchoring: Anchoring;
}

/** An open file for reading. The caller that opens it closes it. */
export interface OpenedFile {
  readonly handle: FileHandle;
  /** The path relative to the root, with forward slashes. */
  readonly path: string;
  readonly bytes: number;
}

/** The place of a file: its open folder and its name there. The caller closes the folder. */
export interface Place {
  readonly folder: OpenFolder;
  readonly name: string;
  /** The path relative to the root, with forward slashes. */
  readonly path: string;
}

/**
 * A session's root folder. Methods throw {@link ToolProblem}: `outside_root`, `root_not_local`, or `tool_failed` with
 * the reason.
 */
export class RootFolder {
  /** The real path of the root. */
  readonly path: string;
  readonly #given: string;
  readonly #system: RootSystem;
  readonly #confines: Confines;

  private constructor(given: string, path: string, system: RootSystem, isRefused: Confines['isRefused']) {
    this.#given = given;
    this.path = path;
    this.#system = system;
    this.#confines = { root: path, isRefused };
  }

  /**
   * Opens the root. Throws `root_not_local` if it is not a folder on this host, if the rules do not allow it, or if it
   * belongs to the host itself.
   */
  static async open(
    path: string,
    system: RootSystem = { realpath: realpathOf, anchoring: SYSTEM_ANCHORING },
    rules: Pick<HostRules, 'roots' | 'refused'> = OPEN_RULES,
  ): Promise<RootFolder> {
    try {
      const real = await system.realpath(path);
      if (!(await lstat(real)).isDirectory()) throw new Error('it is not a folder');
      if (rules.roots !== 'any' && !(await isInAny(rules.roots, real, system)))
        throw new Error(`policy.roots allows ${rules.roots.join(', ') || 'none'}`);
      if (isRefused(rules, real)) throw new Error('it belongs to the host itself');
      return new RootFolder(resolve(path), real, system, (file) => isRefused(rules, file));
    } catch (error) {
      const reason = systemCode(error) === 'ENOENT' ? 'there is no such folder' : (error as Error).message;
      throw new ToolProblem('root_not_local', `the root ${path} cannot be used on this host: ${reason}`);
    }
  }

  /** Opens a regular file for reading. */
  async openFile(path: string): Promise<OpenedFile> {
    return this.#guarded(path, async () => {
      const real = await this.#existing(path);
      const handle = await openVerified(this.#confines, real, fs.O_RDONLY, this.#system.anchoring);
      try {
        const found = await handle.stat();
        if (found.isDirectory()) throw new ToolProblem('tool_failed', `${path} is a folder; list_files shows it`);
        if (!found.isFile()) throw new ToolProblem('tool_failed', `${path} is not a regular file`);
        return { handle, path: this.shown(real), bytes: found.size };
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  /** Opens a folder. */
  async openFolder(path: string): Promise<OpenFolder> {
    return this.#guarded(path, async () => {
      const real = await this.#existing(path);
      if (!(await lstat(real)).isDirectory()) throw new ToolProblem('tool_failed', `${path} is not a folder`);
      return OpenFolder.open(this.#confines, real, this.#system.anchoring);
    });
  }

  /** Whether a path is a folder. Throws if it does not exist. */
  async isFolder(path: string): Promise<boolean> {
    return this.#guarded(path, async () => (await lstat(await this.#existing(path))).isDirectory());
  }

  /** Opens the place of a file for writing, and creates missing parent folders. */
  async openPlace(path: string): Promise<Place> {
    return this.#guarded(path, async () => {
      const { existing, missing } = await this.#resolve(path);
      const names = missing.length > 0 ? missing : [basename(existing)];
      if (missing.length === 0 && existing === this.path) throw new ToolProblem('tool_failed', `${path} is the root`);
      const above = missing.length > 0 ? existing : dirname(existing);
      let folder = await OpenFolder.open(this.#confines, above, this.#system.anchoring);
      try {
        for (const name of names.slice(0, -1)) {
          await folder.makeFolder(name);
          const next = await folder.openFolder(name);
          await folder.close();
          folder = next;
        }
        const name = names.at(-1) as string;
        return { folder, name, path: this.shown(resolve(folder.path, name)) };
      } catch (error) {
        await folder.close();
        throw error;
      }
    });
  }

  /** Resolves a path, relative to the root, even if it does not exist. */
  async locate(path: string): Promise<{ readonly path: string; readonly exists: boolean }> {
    return this.#guarded(path, async () => {
      const { existing, missing } = await this.#resolve(path);
      return { path: this.shown(resolve(existing, ...missing)), exists: missing.length === 0 };
    });
  }

  /** Formats an absolute path in the root for models: relative, with forward slashes. */
  shown(real: string): string {
    return relative(this.path, real).split(sep).join('/') || '.';
  }

  async #existing(path: string): Promise<string> {
    const { existing, missing } = await this.#resolve(path);
    if (missing.length > 0) throw new ToolProblem('tool_failed', `${path}: there is no such file or folder`);
    return existing;
  }

  /** The real path of the deepest existing part of a path, and the missing names below it. */
  async #resolve(path: string): Promise<{ existing: string; missing: string[] }> {
    if (path.includes('\0')) throw outsideRoot(path, 'contains a NUL byte');
    if (path.length > TOOL_BOUNDS.pathMaxChars) {
      throw new ToolProblem('tool_failed', `a path may have at most ${TOOL_BOUNDS.pathMaxChars} characters`);
    }
    const wanted = this.#normal(path);
    if (!isInside(this.path, wanted)) throw outsideRoot(path, 'leads out of the root');

    const missing: string[] = [];
    let candidate = wanted;
    for (;;) {
      const real = await this.#realpathOrNull(path, candidate);
      if (real !== null) {
        if (!isInside(this.path, real)) throw outsideRoot(path, 'leads out of the root through a symbolic link');
        if (this.#confines.isRefused(resolve(real, ...missing))) throw hostsOwn(path);
        return { existing: real, missing };
      }
      if (await exists(candidate)) throw outsideRoot(path, 'goes through a broken symbolic link');
      if (candidate === this.path) throw new ToolProblem('root_not_local', 'the root folder no longer exists');
      missing.unshift(basename(candidate));
      candidate = dirname(candidate);
    }
  }

  /** An absolute path may start with the root as the session was given it, which may differ from its real path. */
  #normal(path: string): string {
    const absolute = resolve(this.path, path);
    if (!isAbsolute(path) || isInside(this.path, absolute) || !isInside(this.#given, absolute)) return absolute;
    return resolve(this.path, relative(this.#given, absolute));
  }

  async #realpathOrNull(path: string, candidate: string): Promise<string | null> {
    try {
      return await this.#system.realpath(candidate);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null;
      if (systemCode(error) === 'ELOOP') throw outsideRoot(path, 'goes through broken symbolic links');
      throw error;
    }
  }

  async #guarded<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw systemProblem(path, error);
    }
  }
}

async function isInAny(folders: readonly string[], real: string, { realpath }: RootSystem): Promise<boolean> {
  for (const folder of folders) {
    // A missing folder contains no root.
    const allowed = await realpath(folder).catch(() => null);
    if (allowed !== null && isInside(allowed, real)) return true;
  }
  return false;
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}
