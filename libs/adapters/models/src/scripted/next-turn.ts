/** Which turn of a script answers a request. */
import { type AssistantMessage, type Failure, type Message, regexMatches, textOf } from '@coxswain/protocol';
import { type Marker, type Progress, progressOf } from './marker.ts';
import { type Ranges, withMember } from './ranges.ts';
import type { Script } from './script.ts';

/**
 * The first unused turn whose `match` holds, as the marker of the message that plays it; or `script_exhausted`.
 * @param last the session's newest answer, which may no longer stand among the messages, or never have.
 */
export function nextTurn(
  script: Script,
  messages: readonly Message[],
  requestTurn: number,
  last: AssistantMessage | null = null,
): Marker | Failure {
  const progress = progressOf(messages, script.file, last);
  return script.sequential
    ? nextInOrder(script, progress, requestTurn)
    : nextMatching(script, messages, progress, requestTurn);
}

function nextInOrder(script: Script, progress: Progress, requestTurn: number): Marker | Failure {
  const next = progress.marker ? progress.marker.turn + 1 : 0;
  const left = next < script.turns.length;
  if (!left && !script.loop) return exhausted(script, requestTurn, 'all of them are used');
  return { file: script.file, turn: left ? next : 0, answer: progress.answers + 1 };
}

function nextMatching(
  script: Script,
  messages: readonly Message[],
  progress: Progress,
  requestTurn: number,
): Marker | Failure {
  const userAt = newestUserMessage(messages, progress);
  const text = userAt < 0 ? '' : textOf(messages[userAt] as Message);
  const { marker } = progress;
  const used = marker ? (marker.used ?? [[0, marker.turn] as const]) : [];
  const next = { file: script.file, answer: progress.answers + 1, userBack: messages.length - userAt };

  const turn = firstUnused(script, used, text);
  if (turn !== null) return { ...next, turn, used: withMember(used, turn) };
  const again = script.loop ? firstUnused(script, [], text) : null;
  if (again !== null) return { ...next, turn: again, used: [[again, again]] };
  return exhausted(script, requestTurn, `no unused one matches ${JSON.stringify(text.slice(0, 200))}`);
}

// The marker says where the newest user message stood, so that a long run of tool calls is not searched through each
// time. Where a shortened transcript has moved it, the search finds what there is.
function newestUserMessage(messages: readonly Message[], progress: Progress): number {
  for (let at = messages.length - 1; at >= 0; at--) {
    if (messages[at]?.role === 'user') return at;
    if (at === progress.at && progress.marker?.userBack !== undefined) {
      const marked = at - progress.marker.userBack;
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
