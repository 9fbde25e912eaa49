/** The start of a page of sessions, and the cursor that contains it. */
import { SessionId } from '@coxswain/protocol';
import { cursorOf, cursorUnknown, partsOfCursor } from './page-cursor.ts';

/**
 * Where a page starts, by the parts of a walk (page-of-sessions.ts).
 * `walk` is the sequence number of the newest index entry when the walk began.
 */
export type PageStart = IndexStart | IdStart<'unindexed'> | IdStart<'since'>;

/** A start in the index. */
export interface IndexStart {
  readonly part: 'index';
  readonly walk: number;
  /** The highest sequence number of the range. */
  readonly upTo: number;
  /** The lowest sequence number of the range; 0 if the range has not been read yet. */
  readonly from: number;
  /** The sequence numbers of the sessions of the range that earlier pages have shown; some may be outside of it. */
  readonly shown: ReadonlySet<number>;
}

/** A start among sessions without an entry, or with an entry that was written since the walk began. */
export interface IdStart<Part extends 'unindexed' | 'since'> {
  readonly part: Part;
  readonly walk: number;
  /** The last session that was examined; empty at the start of the part. */
  readonly id: string;
}

/** Encodes a start as a cursor. */
export function wordOf(start: PageStart): string {
  const { part, walk } = start;
  if (part !== 'index') return cursorOf([part, String(walk), '0', '0', start.id]);
  const { upTo, from, shown } = start;
  return cursorOf([part, String(walk), String(upTo), String(from), stepsOf(shown, from)]);
}

/** Decodes a cursor. @throws ReadRefusedError `invalid_field` for a cursor that no page returns. */
export function startOf(cursor: string): PageStart {
  const [part, ...parts] = partsOfCursor(cursor, 5);
  const rest = parts.pop() as string;
  if (!parts.every((digits) => /^\d{1,15}$/.test(digits))) throw cursorUnknown();
  const [walk, upTo, from] = parts.map(Number) as [number, number, number];
  if (part === 'unindexed' || part === 'since') {
    if (upTo > 0 || from > 0 || !(rest === '' || SessionId.safeParse(rest).success)) throw cursorUnknown();
    return { part, walk, id: rest };
  }
  if (part !== 'index' || upTo === 0 || from > upTo || upTo > walk || (from === 0 && rest !== ''))
    throw cursorUnknown();
  return { part, walk, upTo, from, shown: seqsOf(rest, from, walk) };
}

/** Sequence numbers as the steps from one to the next, in base 36: most entries of a range are close to each other. */
function stepsOf(seqs: ReadonlySet<number>, from: number): string {
  let last = from;
  const steps = [...seqs]
    .sort((one, other) => one - other)
    .map((seq) => {
      const step = seq - last;
      last = seq;
      return step.toString(36);
    });
  return steps.join('.');
}

function seqsOf(steps: string, from: number, max: number): ReadonlySet<number> {
  const seqs = new Set<number>();
  let last = from;
  for (const step of steps === '' ? [] : steps.split('.')) {
    if (!/^[0-9a-z]{1,9}$/.test(step)) throw cursorUnknown();
    last += Number.parseInt(step, 36);
    if (last > max) throw cursorUnknown();
    seqs.add(last);
  }
  return seqs;
}
