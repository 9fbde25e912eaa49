/**
 * The schedule of a scripted turn. It depends on the turn's figures and not on measured time, so that a fault cuts the
 * answer at the same piece on every machine.
 */
import type { FaultKind, ScriptedTurn } from './script.ts';

/** One piece of text, and its time in milliseconds after the request. */
export interface TimedPiece {
  readonly type: 'text' | 'reasoning';
  readonly text: string;
  readonly atMs: number;
}

/** The schedule of a turn. */
export interface Timeline {
  readonly pieces: readonly TimedPiece[];
  /** The time of the calls and of the end of the answer; null if a fault ends it. */
  readonly endMs: number | null;
  readonly fault: { readonly kind: FaultKind; readonly atMs: number } | null;
}

// Faults of the connection and of the request occur before the first piece. Faults of the stream occur at its end.
const STRIKES_AT_END: ReadonlySet<FaultKind> = new Set(['garbage', 'no_final_frame']);

/** Creates the schedule of a turn. */
export function timelineOf(turn: ScriptedTurn): Timeline {
  const startMs = turn.delay_ms ?? 0;
  const chunkMs = turn.chunk_ms ?? 0;
  const pieces: TimedPiece[] = [];
  let atMs = startMs;
  for (const type of ['reasoning', 'text'] as const) {
    for (const text of piecesOf(turn[type] ?? '', chunkMs)) {
      pieces.push({ type, text, atMs });
      atMs += chunkMs;
    }
  }
  const { fail } = turn;
  if (!fail) return { pieces, endMs: atMs, fault: null };
  if (fail.after_ms === undefined) {
    return STRIKES_AT_END.has(fail.kind)
      ? { pieces, endMs: null, fault: { kind: fail.kind, atMs } }
      : { pieces: [], endMs: null, fault: { kind: fail.kind, atMs: startMs } };
  }
  const strikesMs = fail.after_ms;
  return {
    pieces: pieces.filter((piece) => piece.atMs <= strikesMs),
    endMs: null,
    fault: { kind: fail.kind, atMs: strikesMs },
  };
}

// Word by word with the following space; in one piece without a delay between words.
function piecesOf(text: string, chunkMs: number): readonly string[] {
  if (text === '') return [];
  return chunkMs === 0 ? [text] : (text.match(/\s*\S+\s*|\s+/g) ?? [text]);
}
