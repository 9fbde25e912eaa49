/**
 * The steering file: every line that is written to it is sent to the session as a steering message. The file is cleared
 * when all its lines are done.
 *
 * - S1: The id of a line's command is made of the session, the file's generation, the line's position and its bytes.
 *   Sending a line again, after a crash at any point, repeats the same command and has no effect.
 * - S2: A line that is sent is done only when the bus has acknowledged it. This is stored before the file is cleared.
 * - S3: Clearing moves the file aside and creates an empty one, so that no write is lost. A writer that still has the
 *   moved file open can write to it, and its lines are sent from there. A file that cannot be moved is truncated in
 *   place when all its bytes are done.
 * - S4: A line that cannot be sent is moved to a separate file, with a code and a notice. No line is dropped
 *   silently.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { appendFile, type FileHandle, lstat, open, rename, stat } from 'node:fs/promises';
import { BOUNDS, utf8Of } from '@coxswain/protocol';
import { claimFile, type FileClaim } from '../folders/mod.ts';
import { readState, type SteeringState, writeState } from './steering-state.ts';
import { advance, isTrackOf, newTrack, nextLine, readAt, type Track } from './tracked-file.ts';

/** The parts that a steering file uses. */
export interface SteeringFileOptions {
  /** Absolute path. Neither the file nor its folder needs to exist. */
  readonly path: string;
  readonly sessionId: string;
  /** Publishes one text under an id. Resolves when the bus has acknowledged it. */
  readonly send: (text: string, commandId: string) => Promise<unknown>;
  /** Prints a sentence for the person. It starts with a code. */
  readonly notice: (text: string) => void;
  /** A monotonic clock, in ms. */
  readonly nowMs?: () => number;
}

/** The wait for the end of an unfinished line, in ms after its last growth. */
const PARTIAL_WAIT_MS = 2_000;
/** The maximum length of a line, in bytes: the body of a command without its frame. */
const LINE_MAX_BYTES = BOUNDS.commandBodyMaxBytes - 256;
const CHUNK_BYTES = 64 * 1024;

/** The suffixes of the side files, keyed by purpose. */
const SUFFIXES = { state: '.state', sent: '.sent', refused: '.refused' } as const;

/** The file itself, or the one that was moved aside. */
type Which = 'current' | 'sent';

/** The bus did not accept a line. The line stays in the file. */
class NotSentError extends Error {}

/** A steering file, read by {@link look}. Calls of it must not overlap. */
export class SteeringFile {
  readonly #options: SteeringFileOptions;
  readonly #nowMs: () => number;
  #state: SteeringState | null = null;
  #claim: Extract<FileClaim, { release: unknown }> | null = null;
  /** The unfinished line of each file: its end, and the time since which it has not grown. */
  readonly #partials = new Map<
    Which,
    { readonly generation: string; readonly end: number; readonly sinceMs: number }
  >();
  #lastNotice = '';

  constructor(options: SteeringFileOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Sends the lines that are in the file now. Never rejects: a failure is reported, and retried at the next call. */
  async look(): Promise<void> {
    try {
      if (!(await this.#held())) return;
      this.#state ??= await readState(this.#sideFile('state'));
      await this.#takeSent();
      await this.#takeCurrent();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // The file does not exist, so there is nothing to send. Without its folder, it cannot be claimed.
      if (code === 'ENOENT') {
        if (!this.#claim) this.#notify(`steering_file_unusable: ${this.#options.path}: its folder does not exist yet`);
        return;
      }
      if (error instanceof NotSentError)
        this.#notify(`steering_not_sent: ${message}; the line stays in ${this.#options.path}`);
      else this.#notify(`steering_file_unusable: ${this.#options.path}: ${message}`);
      // The stored state may be behind the work that was done, so it is read again.
      this.#state = null;
    }
  }

  /** Releases the claim on the file, so that another process can read it. */
  async release(): Promise<void> {
    await this.#claim?.release();
    this.#claim = null;
    this.#state = null;
  }

  async #held(): Promise<boolean> {
    if (this.#claim) return true;
    const claim = await claimFile(this.#options.path);
    if ('heldBy' in claim) {
      this.#notify(`steering_file_held: process ${claim.heldBy} already reads ${this.#options.path}`);
      return false;
    }
    this.#claim = claim;
    return true;
  }

  /** Sends lines of the moved file: from a writer that still had it open, or left unsent by a crash (S3). */
  async #takeSent(): Promise<void> {
    const handle = await openFile(this.#sideFile('sent'));
    if (!handle) return;
    try {
      const { current, sent } = this.#known;
      // After a crash between the move and the storing of the state, the track of the moved file is still the current
      // one.
      const track = (await matching(handle, [sent, current])) ?? newTrack(await inodeOf(handle));
      if (track === current) await this.#remember({ current: newTrack(null), sent: track });
      else if (track !== sent) await this.#remember({ current, sent: track });
      await this.#takeLines(handle, 'sent');
    } finally {
      await handle.close();
    }
  }

  async #takeCurrent(): Promise<void> {
    const { path } = this.#options;
    const entry = await lstat(path);
    const handle = await openFile(path);
    if (!handle) {
      this.#notify(`steering_file_unusable: ${path} is not a file`);
      return;
    }
    try {
      const known = this.#known;
      if (!(await isTrackOf(known.current, handle))) {
        await this.#remember({ ...known, current: newTrack(await inodeOf(handle)) });
      }
      if (!(await this.#takeLines(handle, 'current'))) return;
      if (this.#known.current.consumed > 0) await this.#clear(handle, entry.isSymbolicLink() || entry.nlink > 1);
      this.#lastNotice = '';
    } finally {
      await handle.close();
    }
  }

  /** Sends line after line. @returns whether all bytes of the file are done. */
  async #takeLines(handle: FileHandle, which: Which): Promise<boolean> {
    for (;;) {
      const track = this.#known[which] as Track;
      const found = await nextLine(handle, track.consumed, LINE_MAX_BYTES);
      switch (found.kind) {
        case 'none':
          return true;
        case 'partial':
          if (!this.#hasWaited(which, track, found.end)) return false;
          await this.#sendLine(handle, which, track, found.bytes, found.end);
          break;
        case 'line':
          await this.#sendLine(handle, which, track, found.bytes, found.end);
          break;
        case 'too_long':
          if (found.end === null) {
            this.#notify(
              `body_too_large: a line has ${found.atLeast} bytes without an end; the limit is ${LINE_MAX_BYTES}`,
            );
            return false;
          }
          await this.#refuse(
            handle,
            track.consumed,
            found.end,
            `body_too_large: a line has ${found.atLeast} bytes; the limit is ${LINE_MAX_BYTES}`,
          );
          await this.#done(handle, which, found.end);
          break;
      }
    }
  }

  #hasWaited(which: Which, { generation }: Track, end: number): boolean {
    const partial = this.#partials.get(which);
    if (partial?.generation === generation && partial.end === end) {
      return this.#nowMs() - partial.sinceMs >= PARTIAL_WAIT_MS;
    }
    this.#partials.set(which, { generation, end, sinceMs: this.#nowMs() });
    return false;
  }

  async #sendLine(handle: FileHandle, which: Which, track: Track, bytes: Buffer, end: number) {
    const text = lineOf(bytes);
    if (text === null) await this.#refuse(handle, track.consumed, end, 'invalid_utf8: a line is not UTF-8 text');
    else if (text.trim() !== '') await this.#send(handle, track, text, bytes, end);
    await this.#done(handle, which, end);
  }

  async #send(handle: FileHandle, track: Track, text: string, bytes: Buffer, end: number): Promise<void> {
    try {
      await this.#options.send(text, commandIdOf(this.#options.sessionId, track, bytes));
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      // The line was rejected before it was sent, and would be rejected again.
      if (code !== 'body_too_large') throw new NotSentError(message, { cause: error });
      await this.#refuse(handle, track.consumed, end, `${code}: ${message}`);
    }
  }

  /** Stores a line that cannot be sent (S4). It is copied in chunks, because a line may be larger than memory. */
  async #refuse(handle: FileHandle, from: number, end: number, why: string): Promise<void> {
    const refused = this.#sideFile('refused');
    for (let at = from; at < end; at += CHUNK_BYTES) {
      await appendFile(refused, await readAt(handle, at, Math.min(CHUNK_BYTES, end - at)), { mode: 0o600 });
    }
    this.#options.notice(`${why}; it was moved to ${refused}`);
  }

  async #done(handle: FileHandle, which: Which, consumed: number): Promise<void> {
    const known = this.#known;
    await this.#remember({ ...known, [which]: await advance(known[which] as Track, handle, consumed) });
  }

  /** Clears the file (S3). A file that cannot be moved is truncated in place, if it has not grown. */
  async #clear(handle: FileHandle, keepInPlace: boolean): Promise<void> {
    const { path } = this.#options;
    const { current } = this.#known;
    if (keepInPlace || !(await this.#moveAside())) {
      const { size } = await handle.stat();
      if (size !== current.consumed) return;
      await emptied(path);
      // The same text after this is another message.
      await this.#remember({ ...this.#known, current: newTrack(current.ino) });
      return;
    }
    // Either this process or a writer creates the file.
    const { mode } = await handle.stat();
    const made = await open(path, 'ax', mode & 0o777).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      return null;
    });
    await made?.chmod(mode & 0o777);
    await made?.close();
    // An editor may have replaced the file just before. Then the new file was moved without being read, and is read
    // here.
    await this.#takeSent();
  }

  async #moveAside(): Promise<boolean> {
    try {
      await rename(this.#options.path, this.#sideFile('sent'));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw error;
      // A mount point, or a folder that is not writable.
      return false;
    }
  }

  get #known(): SteeringState {
    if (!this.#state) throw new Error('the state of the steering file is not loaded');
    return this.#state;
  }

  async #remember(state: SteeringState): Promise<void> {
    await writeState(this.#sideFile('state'), state);
    this.#state = state;
  }

  #sideFile(what: keyof typeof SUFFIXES): string {
    return `${this.#options.path}${SUFFIXES[what]}`;
  }

  // A problem that repeats at every call is reported once.
  #notify(text: string): void {
    if (text === this.#lastNotice) return;
    this.#lastNotice = text;
    this.#options.notice(text);
  }
}

async function inodeOf(handle: FileHandle): Promise<string> {
  return String((await handle.stat({ bigint: true })).ino);
}

async function matching(handle: FileHandle, tracks: readonly (Track | null)[]): Promise<Track | null> {
  for (const track of tracks) if (track && (await isTrackOf(track, handle))) return track;
  return null;
}

/** Opens a regular file for reading; null if there is none or it is something else. Does not wait for a pipe. */
async function openFile(path: string): Promise<FileHandle | null> {
  let handle: FileHandle;
  try {
    if (!(await stat(path)).isFile()) return null;
    // A pipe that replaces the file at this moment does not block either.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return null;
}

async function emptied(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.truncate(0);
  } finally {
    await handle.close();
  }
}

function commandIdOf(sessionId: string, { generation, consumed }: Track, bytes: Buffer): string {
  const text = createHash('sha256').update(`${sessionId}\n${generation}\n${consumed}\n`).update(bytes).digest('hex');
  return `file-${text.slice(0, 48)}`;
}

function lineOf(bytes: Buffer): string | null {
  const text = utf8Of(bytes);
  return text?.endsWith('\r') ? text.slice(0, -1) : text;
}
