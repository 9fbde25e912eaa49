/**
 * Reads whole files safely: the one place for files whose path a request, a repository or a configuration names.
 *
 * FILE-1: Only regular files are read. A pipe, socket, device or folder is refused, and none of them is waited for:
 *         the file is opened with O_NONBLOCK, and what was opened is judged by its descriptor (fstat), not by its path.
 * FILE-2: At most `maxBytes` bytes are read and held, however large the file becomes while it is read.
 * FILE-3: The real path of what was opened is reported, so that a rule about folders is applied to the file that was read and
 *         not to one that a link led to a moment before.
 * FILE-4: An error states what is wrong and never quotes the content or the resolved path.
 *
 * Imports from Node, as only `discovery` of this package does otherwise: adapters may not import each other, and all of them need it.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises';

/** Why a file was not read. */
export type UnreadableReason = 'not_found' | 'not_regular' | 'too_large' | 'failed';

/** A file was not read. The message is a clause about the file, without its path: "is a pipe, not a regular file". */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError';
  readonly reason: UnreadableReason;

  constructor(reason: UnreadableReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** The content of a file, and what its descriptor stated when it was opened. */
export interface RegularFile {
  readonly bytes: Buffer;
  readonly mtimeMs: number;
  /** Permissions of the file, as `fs.Stats` has them. */
  readonly mode: number;
  /** Where the opened file lies, without symbolic links. */
  readonly realPath: string;
}

/** One read of the file system: long enough to be fast, short enough that a thread of the pool is soon free again. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads a regular file whole.
 * @param path followed through symbolic links; relative to the working directory.
 * @param maxBytes a larger file is refused without reading it.
 * @throws UnreadableFileError
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<RegularFile> {
  let handle: FileHandle | undefined;
  try {
    // Opening some devices has an effect (a tape rewinds, a watchdog starts), so the path is looked at first.
    // The descriptor decides: the path may lead to another file by the time it is opened.
    assertRegular(await stat(path));
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
    const found = await handle.stat();
    assertRegular(found);
    if (found.size > maxBytes)
      throw new UnreadableFileError('too_large', `has ${found.size} bytes; the limit is ${maxBytes}`);
    const realPath = await realPathOf(handle, found, path);
    return { bytes: await bytesOf(handle, found.size), mtimeMs: found.mtimeMs, mode: found.mode, realPath };
  } catch (error) {
    throw error instanceof UnreadableFileError ? error : unreadable(error as NodeJS.ErrnoException);
  } finally {
    await handle?.close();
  }
}

function assertRegular(found: Stats): void {
  if (!found.isFile()) throw new UnreadableFileError('not_regular', `is ${kindOf(found)}, not a regular file`);
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a folder';
  if (found.isFIFO()) return 'a pipe';
  if (found.isSocket()) return 'a socket';
  return found.isCharacterDevice() || found.isBlockDevice() ? 'a device' : 'a special file';
}

/** Linux knows the path of a descriptor. Elsewhere the path is resolved again, and has to lead to the same file. */
async function realPathOf(handle: FileHandle, opened: Stats, path: string): Promise<string> {
  if (process.platform === 'linux') {
    const known = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => null);
    if (known !== null) return known;
  }
  const real = await realpath(path);
  const found = await stat(real);
  if (found.dev !== opened.dev || found.ino !== opened.ino)
    throw new UnreadableFileError('failed', 'was replaced while it was opened');
  return real;
}

/** The bytes up to the stated size; fewer where the file was shortened meanwhile. A pseudo file states 0 bytes. */
async function bytesOf(handle: FileHandle, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(buffer, filled, Math.min(CHUNK_BYTES, size - filled), filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function unreadable(error: NodeJS.ErrnoException): UnreadableFileError {
  const { code } = error;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new UnreadableFileError('not_found', `does not exist (${code})`, { cause: error });
  // A socket, or a pipe that took the file's place, cannot be opened this way.
  if (code === 'ENXIO')
    return new UnreadableFileError('not_regular', 'is not a regular file (ENXIO)', { cause: error });
  const why = code === 'EACCES' || code === 'EPERM' ? 'permission denied' : 'cannot be read';
  return new UnreadableFileError('failed', `${why} (${code ?? 'unknown error'})`, { cause: error });
}
