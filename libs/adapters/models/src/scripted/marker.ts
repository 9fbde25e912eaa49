/**
 * Markers record the played turns of a script in the transcript.
 *
 * M1 The next turn depends on the script and the request only, so a host continues after a crash as if nothing had
 * happened.
 * M2 A marker contains everything about earlier turns, so only the messages after the newest marker are read. The cost
 * of a request does not grow with its session.
 */
import type { AssistantMessage, Json, JsonObject, Message } from '@coxswain/protocol';
import type { Ranges } from './ranges.ts';
import { parseRanges, printRanges } from './ranges.ts';

/** The provider name of the marker in a part's `provider_metadata`. */
export const MARKER_KEY = 'scripted';

/** The content of a marker. */
export interface Marker {
  readonly file: string;
  /** The turn of this message, from 0. */
  readonly turn: number;
  /**
   * The number of this scripted answer in the session, from 1. Call ids contain it. Turn numbers restart in each run.
   */
  readonly answer: number;
  /** All played turns, this one included; absent if these are 0 to `turn`. */
  readonly used?: Ranges | undefined;
  /** The distance to the newest user message, in messages; absent in sequential scripts. */
  readonly userBack?: number | undefined;
}

/** A marker in the form of a message's metadata. */
export function writeMarker(marker: Marker): { [MARKER_KEY]: JsonObject } {
  const stored: JsonObject = { file: marker.file, turn: marker.turn, answer: marker.answer };
  if (marker.used) stored.used = printRanges(marker.used);
  if (marker.userBack !== undefined) stored.user_back = marker.userBack;
  return { [MARKER_KEY]: stored };
}

/** The progress of a script, as the transcript shows it. */
export interface Progress {
  /** The newest marker of the script. */
  readonly marker: Marker | null;
  /** The index of its message; -1 if there is none. */
  readonly at: number;
  /** The number of scripted answers so far, including those of other scripts. */
  readonly answers: number;
}

/** Reads the progress of a script from the newest markers of a transcript, and from the session's newest answer. */
export function progressOf(messages: readonly Message[], file: string, last: AssistantMessage | null = null): Progress {
  const shown = shownProgress(messages, file);
  const newest = last && markerOf(last);
  if (!newest || newest.answer <= shown.answers) return shown;
  return newest.file === file
    ? { marker: newest, at: -1, answers: newest.answer }
    : { ...shown, answers: newest.answer };
}

function shownProgress(messages: readonly Message[], file: string): Progress {
  let answers: number | null = null;
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at] as Message;
    if (message.role !== 'assistant') continue;
    const marker = markerOf(message);
    if (!marker) continue;
    answers ??= marker.answer;
    if (marker.file === file) return { marker, at, answers };
  }
  return { marker: null, at: -1, answers: answers ?? 0 };
}

function markerOf(message: AssistantMessage): Marker | null {
  const stored = message.content[0]?.provider_metadata?.[MARKER_KEY];
  if (!stored || typeof stored.file !== 'string' || !isCount(stored.turn) || !isCount(stored.answer)) return null;
  return {
    file: stored.file,
    turn: stored.turn,
    answer: stored.answer,
    used: typeof stored.used === 'string' ? parseRanges(stored.used) : undefined,
    userBack: isCount(stored.user_back) ? stored.user_back : undefined,
  };
}

function isCount(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
