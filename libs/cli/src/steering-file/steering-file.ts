/**
 * The steering file: every line that somebody writes to it is sent to the session as steering, and it is cleared when
 * the bus has them all.
 *
 * S1  A line is sent under an id made of the session, the file's incarnation, the line's place and its bytes. Sending
 *     it again, after a crash at whatever point, is the same command and changes nothing.
 * S2  A line counts as done with only when the bus has acknowledged it; that is written down before the file is cleared.
 * S3  Clearing moves the file aside and puts an empty one in its place; nothing is ever cut off that somebody may be
 *     writing to. What still comes to the moved one, from a writer that had it open, is sent from there.
 * S4  What cannot be sent is moved to a file of its own with a code and a notice: nothing is dropped in silence.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { appendFile, type FileHandle, lstat, open, rename, stat } from 'node:fs/promises';
import { BOUNDS, utf8Of } from '@coxswain/protocol';
import { readState, type SteeringState, writeState } from './steering-state.ts';
import { advance, isTrackOf, newTrack, nextLine, readAt, type Track } from './tracked-file.ts';
import { claimWatch, type WatchClaim } from './watch-claim.ts';

/** What a steering file works with. */
export interface SteeringFileOptions {
  /** Absolute. It need not exist, nor its folder. */
  readonly path: string;
  readonly sessionId: string;
  /** Puts one text on the bus under an id; resolves when the bus has it. */
  readonly send: (text: string, commandId: string) => Promise<unknown>;
  /** Tells the person something, in a sentence that begins with a code. */
  readonly notice: (text: string) => void;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** How long the end of a line is waited for once nothing more comes. */
const PARTIAL_WAIT_MS = 2_000;
/** A line, in bytes: the body of a command, less what stands around it. */
const LINE_MAX_BYTES = BOUNDS.commandBodyMaxBytes - 256;
const CHUNK_BYTES = 64 * 1024;

/** The side files, by what they are for. */
const BESIDE = { state: '.state', sent: '.sent', refused: '.refused' } as const;

/** The file itself, or the one that was moved aside. */
type Which = 'current' | 'sent';

/** The bus did not take a line; it stays where it is. */
class NotSentError extends Error {}

/** A steering file that can be looked at. Looks never overlap. */
export class SteeringFile {
  readonly #options: SteeringFileOptions;
  readonly #nowMs: () => number;
  #state: SteeringState | null = null;
  #claim: Extract<WatchClaim, { release: unknown }> | null = null;
  /** The unfinished line of each file: up to where it went, and since when it has not grown. */
  readonly #partials = new Map<
    Which,
    { readonly generation: string; readonly end: number; readonly sinceMs: number }
  >();
  #said = '';

  constructor(options: SteeringFileOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Takes up what stands in the file now. Never rejects: what goes wrong is told, and tried again at the next look. */
  async look(): Promise<void> {
    try {
      if (!(await this.#held())) return;
      this.#state ??= await readState(this.#beside('state'));
      await this.#takeSent();
      await this.#takeCurrent();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // Not there yet, or not there any more: there is nothing to take.
      if (code === 'ENOENT') return;
      if (error instanceof NotSentError)
        this.#say(`steering_not_sent: ${message}; the line stays in ${this.#options.path}`);
      else this.#say(`steering_file_unusable: ${this.#options.path}: ${message}`);
      // What was written down may be less than what was done: read it again rather than guess.
      this.#state = null;
    }
  }

  /** Gives the file up to whoever looks next. */
  async release(): Promise<void> {
    await this.#claim?.release();
    this.#claim = null;
    this.#state = null;
  }

  async #held(): Promise<boolean> {
    if (this.#claim) return true;
    const claim = await claimWatch(this.#options.path);
    if ('heldBy' in claim) {
      this.#say(`steering_file_held: process ${claim.heldBy} already reads ${this.#options.path}`);
      return false;
    }
    this.#claim = claim;
    return true;
  }

  /** What a writer that had the file open wrote to it after it was moved aside, or a crash kept from being sent (S3). */
  async #takeSent(): Promise<void> {
    const handle = await openFile(this.#beside('sent'));
    if (!handle) return;
    try {
      const { current, sent } = this.#known;
      // A crash after the move and before it was written down: the track is still the current one.
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
      this.#say(`steering_file_unusable: ${path} is not a file`);
      return;
    }
    try {
      const known = this.#known;
      if (!(await isTrackOf(known.current, handle))) {
        await this.#remember({ ...known, current: newTrack(await inodeOf(handle)) });
      }
      if (!(await this.#takeLines(handle, 'current'))) return;
      if (this.#known.current.consumed > 0) await this.#clear(handle, entry.isSymbolicLink() || entry.nlink > 1);
      this.#said = '';
    } finally {
      await handle.close();
    }
  }

  /** Sends line after line. @returns whether everything that stands there is done with. */
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
            this.#say(
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
      // Refused before it was sent: sending it again would be refused again.
      if (code !== 'body_too_large') throw new NotSentError(message, { cause: error });
      await this.#refuse(handle, track.consumed, end, `${code}: ${message}`);
    }
  }

  /** Keeps what cannot be sent (S4). Copied piece by piece: a line may be larger than memory. */
  async #refuse(handle: FileHandle, from: number, end: number, why: string): Promise<void> {
    const refused = this.#beside('refused');
    for (let at = from; at < end; at += CHUNK_BYTES) {
      await appendFile(refused, await readAt(handle, at, Math.min(CHUNK_BYTES, end - at)), { mode: 0o600 });
    }
    this.#options.notice(`${why}; it was moved to ${refused}`);
  }

  async #done(handle: FileHandle, which: Which, consumed: number): Promise<void> {
    const known = this.#known;
    await this.#remember({ ...known, [which]: await advance(known[which] as Track, handle, consumed) });
  }

  /** Clears the file (S3). Where it cannot be moved it is emptied in its place, if nothing has come to it just now. */
  async #clear(handle: FileHandle, keepInPlace: boolean): Promise<void> {
    const { path } = this.#options;
    const { current } = this.#known;
    if (keepInPlace || !(await this.#moveAside())) {
      const { size } = await handle.stat();
      if (size !== current.consumed) return;
      await emptied(path);
      // The same text again is another message.
      await this.#remember({ ...this.#known, current: newTrack(current.ino) });
      return;
    }
    // Whoever comes first makes it; a writer's is as good.
    const { mode } = await handle.stat();
    const made = await open(path, 'ax', mode & 0o777).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      return null;
    });
    await made?.chmod(mode & 0o777);
    await made?.close();
    // An editor may have put another file there just before: then that one was moved, unread, and is read where it is.
    await this.#takeSent();
  }

  async #moveAside(): Promise<boolean> {
    try {
      await rename(this.#options.path, this.#beside('sent'));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw error;
      // A mount point, or a folder that may not be written to.
      return false;
    }
  }

  get #known(): SteeringState {
    if (!this.#state) throw new Error('a steering file is looked at before its state is read');
    return this.#state;
  }

  async #remember(state: SteeringState): Promise<void> {
    await writeState(this.#beside('state'), state);
    this.#state = state;
  }

  #beside(what: keyof typeof BESIDE): string {
    return `${this.#options.path}${BESIDE[what]}`;
  }

  // The same trouble at every look is told once.
  #say(text: string): void {
    if (text === this.#said) return;
    this.#said = text;
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

/** An ordinary file, open to be read, or null where there is none or it is something else. A pipe is not waited for. */
async function openFile(path: string): Promise<FileHandle | null> {
  let handle: FileHandle;
  try {
    if (!(await stat(path)).isFile()) return null;
    // A pipe that takes the file's place just now is not waited for either.
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
