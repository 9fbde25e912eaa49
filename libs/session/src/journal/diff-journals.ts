/**
 * Compares two journals: the first record that differs, and the differences of each turn. The comparison ignores ids of
 * sessions, children and commands, and members such as hosts, epochs, durations, due times and copy origins
 * ({@link OF_ONE_SESSION}). It takes only the input, events, state and open effects of a record, so times and hashes of
 * records do not count. Times in messages to the model count. Records that only name the session's owner are ignored, so
 * an unchanged fork equals its origin up to the last copied record.
 */
import { childIdOf, type JournalRecord, type Json } from '@coxswain/protocol';
import { describeRecord } from './describe-record.ts';
import { firstDifference } from './first-difference.ts';
import { JournalDigest, type SaidInTurn, type TurnDigest } from './journal-digest.ts';

/** The first record in which two journals differ. */
export interface Divergence {
  /** The record's number in each journal; null where the journal has ended. */
  readonly n: readonly [a: number | null, b: number | null];
  /** RFC 6901 pointer to the first member that differs; empty where one journal has ended. */
  readonly path: string;
  readonly a: Json | undefined;
  readonly b: Json | undefined;
  /** The record's description in each journal; null where the journal has ended. */
  readonly is: readonly [a: string | null, b: string | null];
}

/** One difference in a turn. Turn 0 stands for the run itself: what precedes its first turn, and its end. */
export interface Difference {
  readonly run: number;
  readonly turn: number;
  readonly what: SaidInTurn['what'];
  /** The subject of the item, as in {@link SaidInTurn}, such as the id of a call; null if there is none. */
  readonly of: string | null;
  /** A short description; null where the journal has no counterpart. */
  readonly a: string | null;
  readonly b: string | null;
}

/** The result of {@link diffJournals}. */
export interface JournalDiff {
  readonly a: { readonly session_id: string; readonly records: number };
  readonly b: { readonly session_id: string; readonly records: number };
  /** Null where the journals are equal. */
  readonly first: Divergence | null;
  readonly differences: readonly Difference[];
  /** Number of differences that are not listed. */
  readonly more: number;
}

/** Maximum number of listed differences. */
const DIFFERENCES_MAX = 1_000;

/** Compares two journals, each from its first record. */
export async function diffJournals(
  a: AsyncIterable<JournalRecord>,
  b: AsyncIterable<JournalRecord>,
): Promise<JournalDiff> {
  const [left, right] = [new Side(a), new Side(b)];
  let first: Divergence | null = null;
  for (;;) {
    const [one, other] = [await left.next(), await right.next()];
    if (!one && !other) break;
    first ??= divergence(one, other);
  }
  const differences = differencesOf(left.digest, right.digest);
  return {
    a: left.summary,
    b: right.summary,
    first,
    differences: differences.slice(0, DIFFERENCES_MAX),
    more: Math.max(0, differences.length - DIFFERENCES_MAX),
  };
}

interface Read {
  readonly record: JournalRecord;
  readonly comparable: Json;
}

class Side {
  readonly digest = new JournalDigest((text) => this.#withoutChildIds(text));
  readonly #records: AsyncIterator<JournalRecord>;
  readonly #commands = new Map<string, string>();
  /** What replaces the id of each child session in a comparison: `the child of`, and the effect that started it. */
  readonly #children = new Map<string, string>();
  /** The session and its origins: a copied journal may name the children of each. */
  readonly #lineage: string[] = [];
  /** Numbers of ignored records. */
  readonly #claims: number[] = [];
  #sessionId = '';
  #count = 0;

  constructor(records: AsyncIterable<JournalRecord>) {
    this.#records = records[Symbol.asyncIterator]();
  }

  get summary() {
    return { session_id: this.#sessionId, records: this.#count };
  }

  async next(): Promise<Read | null> {
    for (;;) {
      const next = await this.#records.next();
      if (next.done) return null;
      const record = next.value;
      this.#count++;
      this.#sessionId ||= record.session_id;
      this.#nameChildren(record);
      this.digest.add(record);
      if (!isClaim(record)) return { record, comparable: this.#comparable(record) };
      this.#claims.push(record.n);
    }
  }

  #nameChildren({ session_id, events }: JournalRecord): void {
    if (this.#lineage.length === 0) this.#lineage.push(session_id);
    for (const event of events) {
      if (event.type === 'session_copied')
        this.#lineage.push(event.session, ...(event.before ?? []).map(({ session }) => session));
      if (event.type !== 'child_started') continue;
      for (const parent of this.#lineage)
        this.#children.set(childIdOf(parent, event.effect_id), `the child of ${this.#effect(event.effect_id)}`);
    }
  }

  #withoutChildIds(text: string): string {
    return this.#children.size === 0 ? text : text.replace(CHILD_ID, (id) => this.#children.get(id) ?? id);
  }

  /** The compared content of a record. Commands are named by their order. */
  #comparable({ input, events, state, effects_open }: JournalRecord): Json {
    if (input.type === 'command' && !this.#commands.has(input.command_id))
      this.#commands.set(input.command_id, `command ${this.#commands.size + 1}`);
    const kept = events.filter(({ type }) => type !== 'session_copied');
    const value = {
      input: this.#without(input),
      events: kept.map((event) => this.#without(event)),
      state,
      effects_open: effects_open.map((id) => this.#effect(id)),
    };
    return JSON.parse(JSON.stringify(value)) as Json;
  }

  #without(members: object): object {
    return Object.fromEntries(
      Object.entries(members)
        .filter(([key]) => !OF_ONE_SESSION.has(key))
        .map(([key, value]) => [key, this.#compared(key, value)]),
    );
  }

  #compared(key: string, value: unknown): unknown {
    if (key === 'effect_id') return this.#effect(String(value));
    // Commands of hosts and workers name effects, epochs and durations in their body. The body of an event is a text.
    if (key === 'body' && typeof value === 'object' && value !== null) return this.#without(value);
    return this.#renamed(value);
  }

  /** The id of an effect starts with its record's number. The result counts records without the ignored ones. */
  #effect(id: string): string {
    const [n, rest] = id.split('-');
    return `${Number(n) - this.#claims.filter((claim) => claim < Number(n)).length}-${rest}`;
  }

  #renamed(value: unknown): unknown {
    if (typeof value === 'string')
      return value === this.#sessionId ? 'session' : (this.#commands.get(value) ?? this.#withoutChildIds(value));
    if (Array.isArray(value)) return value.map((member) => this.#renamed(member));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#renamed(member)]));
  }
}

/** The format of `childIdOf()`. */
const CHILD_ID = /[0-9a-f]{32}/g;

/**
 * Members of inputs and events that are specific to one session, its host or its clock. The due times of timers and
 * suspensions follow from the time of a record, or from a time in an input.
 */
const OF_ONE_SESSION: ReadonlySet<string> = new Set([
  'session_id',
  'host',
  'epoch',
  'at',
  'due_at_ms',
  'until_ms',
  'duration_ms',
  'receipt_to',
  'copied_from',
]);

/** Whether a record only names the session's owner. */
function isClaim({ input, events }: JournalRecord): boolean {
  return input.type === 'owned' && events.every(({ type }) => type === 'owned');
}

function divergence(a: Read | null, b: Read | null): Divergence | null {
  const n = [a?.record.n ?? null, b?.record.n ?? null] as const;
  const is = [a && describeRecord(a.record), b && describeRecord(b.record)] as const;
  if (!a || !b) return { n, path: '', a: undefined, b: undefined, is };
  const difference = firstDifference(a.comparable, b.comparable, '');
  return difference && { n, path: difference.path, a: difference.expected, b: difference.actual, is };
}

function differencesOf(a: JournalDigest, b: JournalDigest): Difference[] {
  const keys = new Set([...a.turns.keys(), ...b.turns.keys()]);
  return [...keys].sort((x, y) => x - y).flatMap((key) => turnDifferences(a.turns.get(key), b.turns.get(key)));
}

function turnDifferences(a: TurnDigest | undefined, b: TurnDigest | undefined): Difference[] {
  const { run, turn } = (a ?? b) as TurnDigest;
  const names = new Set([...(a?.said.keys() ?? []), ...(b?.said.keys() ?? [])]);
  return [...names].flatMap((name) => {
    const [one, other] = [a?.said.get(name), b?.said.get(name)];
    if (one?.fingerprint === other?.fingerprint) return [];
    const { what, of } = (one ?? other) as SaidInTurn;
    return [{ run, turn, what, of, a: one?.text ?? null, b: other?.text ?? null }];
  });
}
