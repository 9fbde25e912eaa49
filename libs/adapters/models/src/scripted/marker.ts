/**
 * Markers: which turns of a script have been played, written into the transcript itself.
 *
 * M1 What is played next is a function of the request alone, so that a host that was killed goes on as if it had not.
 * M2 A marker tells everything about the turns before it, so that only the messages since the newest one are looked
 *    at: the cost of a request does not grow with its session.
 */
import type { AssistantMessage, JsonObject, Message } from '@coxswain/protocol';
import type { Ranges } from './ranges.ts';
import { parseRanges, printRanges } from './ranges.ts';

/** The provider name under which the marker stands in a part's `provider_metadata`. */
export const MARKER_KEY = 'scripted';

/** What a marker says. */
export interface Marker {
  readonly file: string;
  /** The turn that this message plays, from 0. */
  readonly turn: number;
  /** All turns played by then; absent where they are 0 to `turn`. */
  readonly used?: Ranges | undefined;
  /** How many messages before this one the newest user message stood; absent in scripts without `match`. */
  readonly userBack?: number | undefined;
}

/** A marker as it stands in a message. */
export function writeMarker(marker: Marker): { [MARKER_KEY]: JsonObject } {
  const stored: JsonObject = { file: marker.file, turn: marker.turn };
  if (marker.used) stored.used = printRanges(marker.used);
  if (marker.userBack !== undefined) stored.user_back = marker.userBack;
  return { [MARKER_KEY]: stored };
}

/** The newest marker of a script, and where its message stands. */
export function newestMarker(messages: readonly Message[], file: string): { marker: Marker; at: number } | null {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at] as Message;
    if (message.role !== 'assistant') continue;
    const marker = markerOf(message, file);
    if (marker) return { marker, at };
  }
  return null;
}

function markerOf(message: AssistantMessage, file: string): Marker | null {
  const stored = message.content[0]?.provider_metadata?.[MARKER_KEY];
  if (!stored || stored.file !== file || !Number.isSafeInteger(stored.turn) || (stored.turn as number) < 0) return null;
  return {
    file,
    turn: stored.turn as number,
    used: typeof stored.used === 'string' ? parseRanges(stored.used) : undefined,
    userBack: Number.isSafeInteger(stored.user_back) ? (stored.user_back as number) : undefined,
  };
}
