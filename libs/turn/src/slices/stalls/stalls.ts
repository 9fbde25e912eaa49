/**
 * Stall detection: feedback for the model about identical calls, turns without a new result, and rules
 * that deny. A stall never ends a run. Calls are compared as the model requested them, results as the model saw them, both
 * by fingerprint.
 */

import {
  BOUNDS,
  type CallPart,
  canonicalJson,
  type EventOf,
  type Feedback,
  fingerprint,
  type ToolResult,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { StallWatch } from './state.ts';

const IDENTICAL_CALLS = 'stall:identical_calls';

const NO_NEW_RESULT = 'stall:no_new_result';

const policyOf = (rule: string) => `command_policy:${rule}`;

/** The next feedback for the model about a stall, or null. */
export function stallFeedback({ stall, calls }: SessionContext): Feedback | null {
  const isNews = (source: string) => !stall.told.includes(source);
  if (stall.repeats >= BOUNDS.stallIdenticalCalls && isNews(IDENTICAL_CALLS)) {
    const tool = calls.at(-1)?.tool ?? 'the same tool';
    const body = `You called ${tool} ${stall.repeats} times in a row with the same arguments. The result is unlikely to change. Use the results you have, try another approach, or say what blocks you.`;
    return { source: IDENTICAL_CALLS, body };
  }
  if (stall.stale_turns >= BOUNDS.stallTurnsWithoutNewResult && isNews(NO_NEW_RESULT)) {
    const body = `For ${stall.stale_turns} turns no tool call has returned a new result. Try another approach, or finish with what you have and say what is missing.`;
    return { source: NO_NEW_RESULT, body };
  }
  const refusal = stall.refusals[0];
  if (!refusal) return null;
  const body = `Permission rule ${refusal.rule} denies such calls of ${refusal.tool} in this session. No person is asked. A repeated call is denied again.`;
  return { source: policyOf(refusal.rule), body };
}

/**
 * The counters after a complete answer: a call that equals the call before it is counted, and the turn has no new
 * result so far. An answer without calls resets the count of turns without a new result.
 */
export function stallAfterAnswer(stall: StallWatch, calls: readonly CallPart[]): StallWatch {
  let { call, repeats, told } = stall;
  for (const part of calls) {
    const callPrint = fingerprint(`${part.tool} ${canonicalJson(part.args)}`);
    if (callPrint === call) repeats++;
    else {
      call = callPrint;
      repeats = 1;
      told = without(told, IDENTICAL_CALLS);
    }
  }
  const { results, stale_turns, refusals } = stall;
  if (calls.length > 0) return { call, repeats, results, fresh: false, stale_turns, told, refusals };
  return stall.stale_turns === 0 ? stall : { ...stall, stale_turns: 0, told: without(told, NO_NEW_RESULT) };
}

/** The counters after the result of a call: whether the result is new, and the rule that denied the call. */
export function stallAfterResult(
  stall: StallWatch,
  { tool, status, result, denial }: EventOf<'call_ended'>,
): StallWatch {
  const refusals = denial?.by === 'rule' ? refused(stall, denial.rule ?? 'default', tool) : stall.refusals;
  const resultPrint = fingerprint(`${tool} ${status} ${comparedText(result)}`);
  if (stall.results.includes(resultPrint)) return refusals === stall.refusals ? stall : { ...stall, refusals };
  const { call, repeats, stale_turns, told } = stall;
  const results = [...stall.results.slice(-(BOUNDS.stallResultsRemembered - 1)), resultPrint];
  return { call, repeats, results, fresh: true, stale_turns, told, refusals };
}

function refused(stall: StallWatch, rule: string, tool: string): StallWatch['refusals'] {
  const isKnown = stall.told.includes(policyOf(rule)) || stall.refusals.some((refusal) => refusal.rule === rule);
  return isKnown ? stall.refusals : [...stall.refusals, { rule, tool }];
}

/**
 * The counters after the end of a turn with calls: a turn without a new result is counted, any other resets the count.
 */
export function stallAfterTurn(stall: StallWatch): StallWatch {
  if (!stall.fresh) return { ...stall, stale_turns: stall.stale_turns + 1 };
  return stall.stale_turns === 0 ? stall : { ...stall, stale_turns: 0, told: without(stall.told, NO_NEW_RESULT) };
}

/**
 * The counters after feedback from `source` was queued or dropped. Feedback about a streak of calls or turns is not
 * repeated in the same streak. Feedback about a permission rule is not repeated in the same run, except after a
 * hand-off.
 */
export function stallFeedbackQueued(stall: StallWatch, source: string): StallWatch {
  const isOwn = source === IDENTICAL_CALLS || source === NO_NEW_RESULT || source.startsWith(policyOf(''));
  if (!isOwn || stall.told.includes(source)) return stall;
  return {
    ...stall,
    told: [...stall.told, source],
    refusals: stall.refusals.filter((refusal) => policyOf(refusal.rule) !== source),
  };
}

function without(told: readonly string[], source: string): readonly string[] {
  return told.includes(source) ? told.filter((one) => one !== source) : told;
}

// For a file, its size and both ends: reading megabytes for each comparison would cost too much.
const FILE_END_CHARS = 1_024;

function comparedText(result: ToolResult): string {
  return result.content
    .map((part) => {
      if (part.type === 'text') return part.text;
      const { media_type, filename = '', data } = part;
      const content = typeof data === 'string' ? `${data.length} ${ends(data)}` : canonicalJson(data);
      return `${media_type} ${filename} ${content}`;
    })
    .join('\n');
}

function ends(data: string): string {
  return data.length <= 2 * FILE_END_CHARS ? data : data.slice(0, FILE_END_CHARS) + data.slice(-FILE_END_CHARS);
}
