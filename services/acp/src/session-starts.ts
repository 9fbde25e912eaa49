import type { Client, WireSessionListing } from '@coxswain/client';
import { printable } from '@coxswain/client';
import {
  cutGraphemes,
  type JournalRecord,
  modelName,
  type StandIns,
  type StartSettings,
  textOf,
} from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { writeDiagnostic } from './diagnostics.ts';

/** The start of a session for lists and editors, read from the record of its first prompt. */
export interface SessionStart {
  /** The folder of the session; empty if its host chose it. */
  readonly root: string;
  readonly title: string;
  readonly model: string | undefined;
  readonly mode: string | undefined;
  /** The editor's tools that the start names. */
  readonly standIns: StandIns;
  /** Whether another session started this one with a tool call. */
  readonly isChild: boolean;
}

/** Reads the start from a record. @returns null if the record has no prompt. */
function readSessionStart(record: JournalRecord): SessionStart | null {
  const prompt = record.events.find((event) => event.type === 'prompt_received');
  if (prompt?.type !== 'prompt_received') return null;
  const { settings = {} as StartSettings, messages, parent } = prompt;
  const line =
    messages
      .map(textOf)
      .join('\n')
      .split('\n')
      .find((one) => one.trim() !== '') ?? '';
  return {
    root: settings.root ?? '',
    title: cutGraphemes(printable(line.trim()), ACP_BOUNDS.titleMaxChars),
    model: modelName(settings),
    mode: settings.mode,
    standIns: settings.stand_ins ?? {},
    isChild: parent !== undefined,
  };
}

/**
 * Finds the start in a journal. Records of rejected starts may precede it, so the first records are searched, up to
 * `ACP_BOUNDS.startWithinRecords`.
 * @returns null if none of them has a prompt.
 * @throws the errors of the journal.
 */
export async function findSessionStart(
  journal: AsyncIterable<{ readonly record: JournalRecord }>,
): Promise<SessionStart | null> {
  for await (const { record } of journal) {
    const start = readSessionStart(record);
    if (start || record.n >= ACP_BOUNDS.startWithinRecords) return start;
  }
  return null;
}

/** Reads the starts of listed sessions, and caches them. */
export class SessionStarts {
  readonly #known = new Map<string, SessionStart>();

  /** The starts in the order of the list; null for a session without a start, and for one that cannot be read. */
  async of(client: Client, listed: readonly WireSessionListing[]): Promise<(SessionStart | null)[]> {
    const found: (SessionStart | null)[] = [];
    for (let at = 0; at < listed.length; at += ACP_BOUNDS.startsAtOnce) {
      const group = listed.slice(at, at + ACP_BOUNDS.startsAtOnce);
      found.push(...(await Promise.all(group.map(({ session_id }) => this.#read(client, session_id)))));
    }
    return found;
  }

  async #read(client: Client, id: string): Promise<SessionStart | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    let start: SessionStart | null;
    try {
      start = await findSessionStart(client.session(id).journal());
    } catch (error) {
      // A session that cannot be read, or was just deleted, must not hide the others.
      writeDiagnostic(`${id} is left out of the list, because its start cannot be read: ${(error as Error).message}`);
      return null;
    }
    // A session whose starts were rejected may still be started.
    if (start === null) return null;
    const [oldest] = this.#known.keys();
    if (this.#known.size >= ACP_BOUNDS.startsKept && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(id, start);
    return start;
  }
}
