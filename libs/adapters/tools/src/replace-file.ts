/**
 * Replaces the content of a file.
 *
 * The content is written to a temporary file next to it, which is then renamed. A crash leaves the old file or the new
 * one. If that is not permitted for an existing file, it is written in place, where a crash can leave a part of the
 * content. Examples are a read-only folder, a mount point, and a file of another user.
 */
import { randomUUID } from 'node:crypto';
import { constants as fs, type Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Place } from './root-folder.ts';
import { systemCode, systemProblem, ToolProblem } from './tool-problem.ts';

/**
 * Writes a whole file.
 * @param unchangedSince the properties of the file that the content derives from. If the file was replaced or changed
 *   since, nothing is written.
 * @returns whether the file is new.
 * @throws ToolProblem
 */
export async function replaceFile(place: Place, content: Uint8Array, unchangedSince?: Stats): Promise<boolean> {
  try {
    const before = await place.folder.look(place.name);
    if (before !== null && !before.isFile()) {
      throw new ToolProblem(
        'tool_failed',
        `${place.path} is ${before.isDirectory() ? 'a folder' : 'not a regular file'}`,
      );
    }
    if (unchangedSince && !isUnchanged(unchangedSince, before)) {
      throw new ToolProblem(
        'tool_failed',
        `${place.path} was changed by another process in the meantime; read it again`,
      );
    }
    try {
      await writeTemporary(place, content, before);
    } catch (error) {
      if (before === null || !IN_PLACE_INSTEAD.has(systemCode(error) ?? '')) throw error;
      await writeInPlace(place, content);
    }
    return before === null;
  } catch (error) {
    throw systemProblem(place.path, error);
  }
}

const IN_PLACE_INSTEAD = new Set(['EACCES', 'EPERM', 'EBUSY', 'EXDEV']);

async function writeTemporary(place: Place, content: Uint8Array, before: Stats | null): Promise<void> {
  const temporary = `.coxswain-${randomUUID()}.tmp`;
  // The old file may be private. Until the new one has its owner and its mode, only this process may read it.
  const mode = before === null ? 0o666 : 0o600;
  const handle = await place.folder.openFile(temporary, fs.O_WRONLY | fs.O_CREAT | fs.O_EXCL, mode);
  try {
    await writeAndClose(handle, content, before);
    await place.folder.replace(temporary, place.name);
  } catch (error) {
    await place.folder.remove(temporary);
    throw error;
  }
}

async function writeInPlace(place: Place, content: Uint8Array): Promise<void> {
  const handle = await place.folder.openFile(place.name, fs.O_WRONLY | fs.O_TRUNC);
  await writeAndClose(handle, content, null);
}

async function writeAndClose(handle: FileHandle, content: Uint8Array, like: Stats | null): Promise<void> {
  try {
    await handle.writeFile(content);
    if (like !== null) {
      const made = await handle.stat();
      if (made.uid !== like.uid || made.gid !== like.gid) await handle.chown(like.uid, like.gid);
      // Without set-user-ID and set-group-ID, which a write removes: others would run the new content as the owner.
      await handle.chmod(like.mode & 0o777);
    }
    // The journal will record the write, so the content must survive a crash of the machine.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isUnchanged(then: Stats, now: Stats | null): boolean {
  return now !== null && now.ino === then.ino && now.size === then.size && now.mtimeMs === then.mtimeMs;
}

const lastByFile = new Map<string, Promise<unknown>>();

/**
 * Runs `work` once all earlier work with the same key has ended.
 * @param file the key: a file by its real absolute path, or by its path as requested.
 */
export async function runInOrder<T>(file: string, work: () => Promise<T>): Promise<T> {
  const before = lastByFile.get(file) ?? Promise.resolve();
  // A failure of the earlier work concerns only its own caller.
  const mine = before.then(work, work);
  lastByFile.set(file, mine);
  try {
    return await mine;
  } finally {
    if (lastByFile.get(file) === mine) lastByFile.delete(file);
  }
}
