/** Which turn of a script answers a request. */
import { type Failure, type Message, regexMatches, textOf } from '@coxswain/protocol';
import { type Marker, newestMarker } from './marker.ts';
import { type Ranges, withMember } from './ranges.ts';
import type { Script } from './script.ts';

/** The first unused turn whose `match` holds, as the marker of the message that plays it; or `script_exhausted`. */
export function nextTurn(script: Script, messages: readonly Message[], requestTurn: number): Marker | Failure {
  const newest = newestMarker(messages, script.file);
  return script.sequential
    ? nextInOrder(script, newest?.marker, requestTurn)
    : nextMatching(script, messages, newest, requestTurn);
}

function nextInOrder(script: Script, marker: Marker | undefined, requestTurn: number): Marker | Failure {
  const next = marker ? marker.turn + 1 : 0;
  if (next < script.turns.length) return { file: script.file, turn: next };
  return script.loop ? { file: script.file, turn: 0 } : exhausted(script, requestTurn, 'all of them are used');
}

function nextMatching(
  script: Script,
  messages: readonly Message[],
  newest: { marker: Marker; at: number } | null,
  requestTurn: number,
): Marker | Failure {
  const userAt = newestUserMessage(messages, newest);
  const text = userAt < 0 ? '' : textOf(messages[userAt] as Message);
  const used = newest ? (newest.marker.used ?? [[0, newest.marker.turn] as const]) : [];
  const userBack = messages.length - userAt;

  const turn = firstUnused(script, used, text);
  if (turn !== null) return { file: script.file, turn, used: withMember(used, turn), userBack };
  const again = script.loop ? firstUnused(script, [], text) : null;
  if (again !== null) return { file: script.file, turn: again, used: [[again, again]], userBack };
  return exhausted(script, requestTurn, `no unused one matches ${JSON.stringify(text.slice(0, 200))}`);
}

// The marker says where the newest user message stood, so that a long run of tool calls is not searched through each
// time. Where a shortened transcript has moved it, the search finds what there is.
function newestUserMessage(messages: readonly Message[], newest: { marker: Marker; at: number } | null): number {
  for (let at = messages.length - 1; at >= 0; at--) {
    if (messages[at]?.role === 'user') return at;
    if (newest && at === newest.at && newest.marker.userBack !== undefined) {
      const marked = at - newest.marker.userBack;
      if (messages[marked]?.role === 'user') return marked;
    }
  }
  return -1;
}

function firstUnused(script: Script, used: Ranges, text: string): number | null {
  let run = 0;
  for (let turn = 0; turn < script.turns.length; turn++) {
    while (run < used.length && (used[run]?.[1] as number) < turn) run++;
    const current = used[run];
    if (current && current[0] <= turn) {
      turn = current[1];
      continue;
    }
    const match = script.turns[turn]?.match;
    if (match === undefined || regexMatches(match, text)) return turn;
  }
  return null;
}

function exhausted(script: Script, requestTurn: number, why: string): Failure {
  return {
    code: 'script_exhausted',
    message: `script ${script.file} has no answer for turn ${requestTurn}: it has ${script.turns.length} turn${script.turns.length === 1 ? '' : 's'}, and ${why}`,
    retryable: false,
  };
}
