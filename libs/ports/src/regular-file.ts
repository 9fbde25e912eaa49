/**
 * Reads whole files safely. For files whose path comes from a request, a repository or a configuration.
 *
 * FILE-1: Only regular files are read. A pipe, socket, device or folder is refused without blocking. The file is opened
 *         with O_NONBLOCK. The descriptor of the opened file decides (fstat), not its path.
 * FILE-2: At most `maxBytes` bytes are read and held, even if the file grows while it is read.
 * FILE-3: The result has the real path of the opened file. So a rule about folders applies to the file that was read,
 *         even if a link changed before.
 * FILE-4: An error states the problem. It quotes neither the content nor the resolved path.
 *
 * This module imports from Node, as `discovery` does, because adapters share it and may not import each other.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises';

/** The reason why a file was not read. */
export type UnreadableReason = 'not_found' | 'not_regular' | 'too_large' | 'failed';

/**
 * A file was not read. The message is a clause about the file without its path, for example "is a pipe, not a regular
 * file".
 */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError';
  readonly reason: UnreadableReason;

  constructor(reason: UnreadableReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** The content of a file, and the properties of its descriptor after opening. */
export interface RegularFile {
  readonly bytes: Buffer;
  readonly mtimeMs: number;
  /** The mode of the file, as in `fs.Stats`. */
  readonly mode: number;
  /** The path of the opened file, without symbolic links. */
  readonly realPath: string;
}

/** The size of one read: large enough for speed, small enough not to block a thread of the pool for long. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads a whole regular file.
 * @param path symbolic links are followed. A relative path starts at the working directory.
 * @param maxBytes a larger file is refused without reading it.
 * @throws UnreadableFileError
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<RegularFile> {
  let handle: FileHandle | undefined;
  try {
    // Opening some devices has an effect (a tape rewinds, a watchdog starts), so the path is checked before it is
    // opened. The descriptor decides, because the path may lead to another file by then.
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

/** Linux reports the path of a descriptor. Elsewhere the path is resolved again, and must lead to the same file. */
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

/**
 * Reads up to the reported size. The result is shorter if the file was truncated meanwhile. A pseudo file reports 0
 * bytes.
 */
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
  // A socket, or a pipe that replaced the file, cannot be opened in this way.
  if (code === 'ENXIO')
    return new UnreadableFileError('not_regular', 'is not a regular file (ENXIO)', { cause: error });
  const why = code === 'EACCES' || code === 'EPERM' ? 'permission denied' : 'cannot be read';
  return new UnreadableFileError('failed', `${why} (${code ?? 'unknown error'})`, { cause: error });
}
