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

/** The start of a session, as lists and editors need it: read from its first record. */
export interface Beginning {
  /** The folder that it was started for; empty where its host chose it. */
  readonly root: string;
  readonly title: string;
  readonly model: string | undefined;
  readonly mode: string | undefined;
  /** Tools of an editor's that its start has named. */
  readonly standIns: StandIns;
  /** Whether another session has started it, for a call of its own. */
  readonly isChild: boolean;
}

/** The beginning that a first record tells of, or null where it tells of none. */
export function beginningIn(record: JournalRecord): Beginning | null {
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

/** The beginnings of listed sessions, each read once. */
export class Beginnings {
  readonly #known = new Map<string, Beginning | null>();

  /** In the order of the list; null for one that cannot be read. */
  async of(client: Client, listed: readonly WireSessionListing[]): Promise<(Beginning | null)[]> {
    const found: (Beginning | null)[] = [];
    for (let at = 0; at < listed.length; at += ACP_BOUNDS.beginningsAtOnce) {
      const group = listed.slice(at, at + ACP_BOUNDS.beginningsAtOnce);
      found.push(...(await Promise.all(group.map(({ session_id }) => this.#read(client, session_id)))));
    }
    return found;
  }

  async #read(client: Client, id: string): Promise<Beginning | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    let beginning: Beginning | null = null;
    try {
      for await (const { record } of client.session(id).journal()) {
        beginning = beginningIn(record);
        break;
      }
    } catch (error) {
      // One that cannot be read, or that was just deleted, hides no other.
      writeDiagnostic(`${id} is listed without its beginning: ${(error as Error).message}`);
    }
    const [oldest] = this.#known.keys();
    if (this.#known.size >= ACP_BOUNDS.beginningsKept && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(id, beginning);
    return beginning;
  }
}
