/** The journals that a command line can name: a session, an exported file, or standard input. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { BusClient } from '@coxswain/client';
import { blobRefsOf, ID_PATTERN, readBlobLine, readClosingLine } from '@coxswain/protocol';
import type { ExportedJournal } from '@coxswain/session';
import { findBus } from '../connection/mod.ts';
import { callerFolder } from '../folders/mod.ts';
import { findSession } from '../instance/mod.ts';
import { type Invocation, usageError } from '../line/mod.ts';
import { standardInput } from '../terminal/mod.ts';

/** An open journal, to be read once. */
export interface OpenJournal {
  /** The name in messages: the id of the session, or the file as the user named it. */
  readonly name: string;
  /** The stored bytes of its records. Iterating throws if they are not the records of a session. */
  readonly records: AsyncIterable<Uint8Array>;
  /** Reads content that is stored outside of the records. */
  readonly blobs: { get(sha256: string): Promise<Uint8Array | null> };
  /** The export; null for a session on the bus. */
  readonly exported: Pick<ExportedJournal, 'isTailProven'> | null;
}

/** The source of a journal. */
export interface JournalSource {
  readonly kind: 'session' | 'file' | 'pipe';
  /**
   * Whether the source contains everything that its records refer to. A pipe counts as whole, because it cannot be read
   * twice to check.
   */
  readonly isWhole: boolean;
  /** Opens the journal. A session needs a client; a file uses it for content that the file does not contain. */
  open(client: BusClient | null): Promise<OpenJournal>;
}

/** Standard input is not opened by its path: that fails for a socket, and for a second time. */
const STANDARD_INPUT: ReadonlySet<string> = new Set(['-', '/dev/stdin', '/dev/fd/0']);

/** Finds the journal that an argument names. @throws CliError with exit code 2 if it can name none. */
export async function journalSource(asked: string, env: Invocation['env']): Promise<JournalSource> {
  // An empty path would be the folder itself.
  if (asked === '')
    throw usageError('the argument is empty: give a session, an exported file, or - for standard input');
  if (STANDARD_INPUT.has(asked))
    return { kind: 'pipe', isWhole: true, open: async () => exported('standard input', standardInput(), null) };
  const file = resolve(callerFolder(env), asked);
  const kind = await kindOf(file);
  if ((kind === null || kind === 'folder') && !ID_PATTERN.test(asked)) {
    throw usageError(
      `${kind === null ? `there is no file ${asked}` : `${asked} is a folder`}; give a session, an exported file, or - for standard input`,
    );
  }
  // A pipe can be read only once, so its need for a bus is not checked.
  if (kind === 'pipe')
    return { kind: 'pipe', isWhole: true, open: async () => exported(asked, createReadStream(file), null) };
  if (kind === 'file') {
    const isWhole = !(await lacksLargeFields(file));
    return {
      kind,
      isWhole,
      open: async (client) => exported(asked, createReadStream(file), isWhole ? null : client),
    };
  }
  return { kind: 'session', isWhole: false, open: (client) => stored(asked, client as BusClient) };
}

/**
 * Whether these journals need a bus: always for a session; for an incomplete file, only if a bus exists. No server is
 * started for a file.
 */
export async function needsBus(
  { flags, env }: Pick<Invocation, 'flags' | 'env'>,
  sources: readonly JournalSource[],
): Promise<boolean> {
  if (sources.some(({ kind }) => kind === 'session')) return true;
  if (sources.every(({ isWhole }) => isWhole)) return false;
  return (await findBus(flags, env)).address !== null;
}

// The session engine is imported when a journal is read, after the command has connected.
async function exported(name: string, input: NodeJS.ReadableStream, client: BusClient | null): Promise<OpenJournal> {
  const { ExportedJournal, linesOf } = await import('@coxswain/session');
  const journal = new ExportedJournal(linesOf(input), client ? blobsOf(client) : undefined);
  return { name, records: journal.records(), blobs: journal, exported: journal };
}

async function stored(asked: string, client: BusClient): Promise<OpenJournal> {
  const session = await findSession(client, asked);
  return { name: session.id, records: bytesOf(session.journal()), blobs: blobsOf(client), exported: null };
}

function blobsOf(client: BusClient): OpenJournal['blobs'] {
  return { get: (sha256) => client.blob(sha256) };
}

async function* bytesOf(records: AsyncIterable<{ readonly bytes: Uint8Array }>): AsyncGenerator<Uint8Array> {
  let n = 0;
  try {
    for await (const { bytes } of records) {
      n++;
      yield bytes;
    }
  } catch (error) {
    const { asDivergence } = await import('@coxswain/session');
    throw asDivergence(error, n + 1);
  }
}

/**
 * Whether records of a file refer to large fields that it does not contain, such as an older export or one without
 * them.
 */
async function lacksLargeFields(file: string): Promise<boolean> {
  const held = new Set<string>();
  const { linesOf } = await import('@coxswain/session');
  for await (const line of linesOf(createReadStream(file))) {
    try {
      const text = Buffer.from(line).toString('utf8');
      const apart = readBlobLine(text);
      if (apart) held.add(apart.blob);
      else if (readClosingLine(text)) return false;
      else if (line.length > 0 && blobRefsOf(line).some(({ sha256 }) => !held.has(sha256))) return true;
    } catch {
      // An invalid line: reading the journal stops there and reports it.
      return false;
    }
  }
  return false;
}

async function kindOf(path: string): Promise<'file' | 'pipe' | 'folder' | null> {
  try {
    const found = await stat(path);
    if (found.isFile()) return 'file';
    if (found.isDirectory()) return 'folder';
    return found.isFIFO() || found.isCharacterDevice() ? 'pipe' : null;
  } catch {
    // No such file, so the argument is a session.
    return null;
  }
}
