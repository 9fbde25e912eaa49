/**
 * Markers: which turns of a script have been played, written into the transcript itself.
 *
 * M1 What is played next is a function of the request alone, so that a host that was killed goes on as if it had not.
 * M2 A marker tells everything about the turns before it, so that only the messages since the newest one are looked
 *    at: the cost of a request does not grow with its session.
 */
import type { AssistantMessage, Json, JsonObject, Message } from '@coxswain/protocol';
import type { Ranges } from './ranges.ts';
import { parseRanges, printRanges } from './ranges.ts';

/** The provider name under which the marker stands in a part's `provider_metadata`. */
export const MARKER_KEY = 'scripted';

/** What a marker says. */
export interface Marker {
  readonly file: string;
  /** The turn that this message plays, from 0. */
  readonly turn: number;
  /** Which scripted answer of the session this is, from 1; call ids are made of it. Turn numbers begin anew in each run. */
  readonly answer: number;
  /** All turns played by then; absent where they are 0 to `turn`. */
  readonly used?: Ranges | undefined;
  /** How many messages before this one the newest user message stood; absent in scripts without `match`. */
  readonly userBack?: number | undefined;
}

/** A marker as it stands in a message. */
export function writeMarker(marker: Marker): { [MARKER_KEY]: JsonObject } {
  const stored: JsonObject = { file: marker.file, turn: marker.turn, answer: marker.answer };
  if (marker.used) stored.used = printRanges(marker.used);
  if (marker.userBack !== undefined) stored.user_back = marker.userBack;
  return { [MARKER_KEY]: stored };
}

/** What the transcript tells of a script. */
export interface Progress {
  /** The script's newest marker. */
  readonly marker: Marker | null;
  /** Where its message stands; -1 where there is none. */
  readonly at: number;
  /** Scripted answers so far, those of other scripts included. */
  readonly answers: number;
}

/** Reads the progress of a script from the newest markers of a transcript, and from the newest answer of all. */
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
