/** Selects the turn of a script for a request. */
import type { ModelRequest } from '@coxswain/ports';
import { cutText, type Failure, type Message, regexMatches, textOf } from '@coxswain/protocol';
import { type Marker, type Progress, progressOf } from './marker.ts';
import { type Ranges, withMember } from './ranges.ts';
import type { Script, ScriptedTurn } from './script.ts';

/** The inputs of the selection. The session's newest answer may be absent from the messages. */
export type Asked = Pick<ModelRequest, 'messages' | 'turn' | 'system' | 'answered'>;

/** The first unused turn whose patterns all match, as the marker of its message; or `script_exhausted`. */
export function nextTurn(script: Script, request: Asked): Marker | Failure {
  const progress = progressOf(request.messages, script.file, request.answered?.last ?? null);
  return script.sequential ? nextInOrder(script, progress, request.turn) : nextMatching(script, request, progress);
}

function nextInOrder(script: Script, progress: Progress, requestTurn: number): Marker | Failure {
  const next = progress.marker ? progress.marker.turn + 1 : 0;
  const left = next < script.turns.length;
  if (!left && !script.loop) return exhausted(script, requestTurn, 'all of them are used');
  return { file: script.file, turn: left ? next : 0, answer: progress.answers + 1 };
}

function nextMatching(
  script: Script,
  { messages, turn: requestTurn, system }: Asked,
  progress: Progress,
): Marker | Failure {
  const userAt = newestUserMessage(messages, progress);
  const text = userAt < 0 ? '' : textOf(messages[userAt] as Message);
  const { marker } = progress;
  const used = marker ? (marker.used ?? [[0, marker.turn] as const]) : [];
  const next = { file: script.file, answer: progress.answers + 1, userBack: messages.length - userAt };

  const looked: { results?: string } = {};
  const fits = ({ match, match_results, match_system }: ScriptedTurn) => {
    if (match !== undefined && !regexMatches(match, text)) return false;
    if (match_system !== undefined && !regexMatches(match_system, system)) return false;
    if (match_results === undefined) return true;
    looked.results ??= newestResults(messages);
    return regexMatches(match_results, looked.results) === true;
  };

  const turn = firstUnused(script, used, fits);
  if (turn !== null) return { ...next, turn, used: withMember(used, turn) };
  const again = script.loop ? firstUnused(script, [], fits) : null;
  if (again !== null) return { ...next, turn: again, used: [[again, again]] };
  const why = `no unused one matches ${JSON.stringify(cutText(text, 200))}`;
  const { results } = looked;
  return exhausted(
    script,
    requestTurn,
    results === undefined ? why : `${why} and ${JSON.stringify(cutText(results, 200))}`,
  );
}

// The marker has the position of the newest user message, so that a long run of tool calls is not searched at each
// request. If a shortened transcript has moved the message, the search continues.
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

/** The texts of the results since the newest answer, one after another, without other messages. */
function newestResults(messages: readonly Message[]): string {
  const since = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
  return messages
    .slice(since)
    .filter(({ role }) => role === 'tool')
    .map(textOf)
    .join('\n');
}

function firstUnused(script: Script, used: Ranges, fits: (turn: ScriptedTurn) => boolean): number | null {
  let run = 0;
  for (let turn = 0; turn < script.turns.length; turn++) {
    while (run < used.length && (used[run]?.[1] as number) < turn) run++;
    const current = used[run];
    if (current && current[0] <= turn) {
      turn = current[1];
      continue;
    }
    if (fits(script.turns[turn] as ScriptedTurn)) return turn;
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
