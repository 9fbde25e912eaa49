/**
 * The closed catalogue of hook points: when a session calls the hooks of each point, on which surfaces they are
 * registered, and what their glob is matched against (`target`).
 */
import * as z from 'zod';
import { SEAM_KINDS } from '../catalogues/seams.ts';

/** The points, with their names in journals and on the bus. */
export const HOOK_POINTS = [
  'session_start',
  'user_prompt_submit',
  'pre_compact',
  'post_compact',
  'transform_context',
  'PreToolUse',
  'gate_tool_calls',
  'permission_asked',
  'permission_replied',
  'PostToolUse',
  'post_turn',
  'file_edited',
  'session_idle',
  'pre_suspend',
  'post_resume',
  'session_error',
  'session_end',
  'pre_finish',
  'on_unsettled_detected',
  'post_finish',
  'loop_checkpoint',
  'PreStep',
  'PostStep',
  'OnApprovalRequested',
  'OnHandoffEmitted',
  'OnPersonaPaused',
  'OnPersonaResumed',
  'OnBudgetThreshold',
] as const;
/** One hook point. */
export const HookPoint = z.enum(HOOK_POINTS);
export type HookPoint = z.infer<typeof HookPoint>;

/** The surfaces on which handlers are registered. */
export const HOOK_SURFACES = ['tool', 'persona', 'step', 'session', 'checkpoint'] as const;

/** The value that the glob of a registration is matched against. */
export type HookTarget = 'tool name' | 'persona' | 'persona.step' | 'path' | 'kind of seam';

/** One row of the catalogue: a hook point. */
export interface HookPointRow {
  /** The surfaces on which its handlers are registered. */
  readonly surfaces: readonly (typeof HOOK_SURFACES)[number][];
  readonly target: HookTarget;
}

const OF_SESSION: HookPointRow = { surfaces: ['session'], target: 'persona' };
const OF_TOOL: HookPointRow = { surfaces: ['tool'], target: 'tool name' };
const OF_PERSONA: HookPointRow = { surfaces: ['persona', 'step'], target: 'persona' };

/** The catalogue. The readers of registrations, the generated reference and the tests all read this table. */
export const HOOK_CATALOGUE: Readonly<Record<HookPoint, HookPointRow>> = {
  session_start: OF_SESSION,
  user_prompt_submit: OF_SESSION,
  pre_compact: OF_SESSION,
  post_compact: OF_SESSION,
  transform_context: OF_SESSION,
  PreToolUse: OF_TOOL,
  gate_tool_calls: OF_SESSION,
  permission_asked: { ...OF_SESSION, target: 'tool name' },
  permission_replied: { ...OF_SESSION, target: 'tool name' },
  PostToolUse: OF_TOOL,
  post_turn: OF_SESSION,
  file_edited: { ...OF_SESSION, target: 'path' },
  session_idle: OF_SESSION,
  pre_suspend: OF_SESSION,
  post_resume: OF_SESSION,
  session_error: OF_SESSION,
  session_end: OF_SESSION,
  pre_finish: OF_SESSION,
  on_unsettled_detected: OF_SESSION,
  post_finish: OF_SESSION,
  loop_checkpoint: { surfaces: ['checkpoint', 'session'], target: 'kind of seam' },
  PreStep: { ...OF_PERSONA, target: 'persona.step' },
  PostStep: { ...OF_PERSONA, target: 'persona.step' },
  OnApprovalRequested: OF_PERSONA,
  OnHandoffEmitted: OF_PERSONA,
  OnPersonaPaused: OF_PERSONA,
  OnPersonaResumed: OF_PERSONA,
  OnBudgetThreshold: OF_PERSONA,
};

/** When hooks of each point are called, for the reference. Apart from the catalogue, so that bundles for browsers lack it. */
export const HOOK_MOMENTS: Readonly<Record<HookPoint, string>> = {
  session_start: 'a run starts, before its loop',
  user_prompt_submit: 'before the agent sees a prompt, a follow-up or a steer; `origin` says which',
  pre_compact: 'before a compaction that is due',
  post_compact: 'after a compaction',
  transform_context: 'before a model request; the handler is shown the messages',
  PreToolUse: 'for each call, in call order, before the gate',
  gate_tool_calls: 'once for the whole batch, before anything of it runs',
  permission_asked: 'the rules say that a person decides about a call',
  permission_replied: 'it is decided whether a call may run; nothing waits for the answer',
  PostToolUse: 'a call has returned, also one that threw',
  post_turn: 'a turn is recorded, before the session decides whether the run continues',
  file_edited: 'at the boundary of a turn, for each file that it has edited',
  session_idle: 'each time a daemon session starts to wait',
  pre_suspend: 'before a suspension takes effect',
  post_resume: 'after a suspension',
  session_error: 'before session_end, when the run ended in error',
  session_end: 'after the loop',
  pre_finish: 'before the finish callback, also if there is none',
  on_unsettled_detected: 'between pre_finish and post_finish, when something is unsettled',
  post_finish: 'after the finish callback, also if there is none',
  loop_checkpoint: 'each pass of a seam; nothing waits for the answer',
  PreStep: 'before a declared step of a persona',
  PostStep: 'after a declared step has answered',
  OnApprovalRequested:
    'a call waits for a person; the call does not wait for these hooks, but a denial by one ends the wait',
  OnHandoffEmitted: 'before the session is handed off to another persona',
  OnPersonaPaused: 'a step of the session waits, because its persona is paused; nothing waits for the answer',
  OnPersonaResumed: 'its persona is no longer paused, and the session continues; nothing waits for the answer',
  OnBudgetThreshold: 'a part of a budget is used up: at `pct` percent, or at 50, 80, 95 and 100; once each in a run',
};

/** Percentages of a budget at which a registration without a percentage is called. */
export const BUDGET_HOOK_PERCENTAGES: readonly number[] = [50, 80, 95, 100];

/**
 * The name of a point in PascalCase, as in documentation and the code of users. Journals and the bus use the names in
 * {@link HOOK_POINTS}.
 */
export function pascalNameOfPoint(point: HookPoint): string {
  return point.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The name of a point in snake_case, which registrations accept as well: `pre_tool_use` for `PreToolUse`. */
export function snakeNameOfPoint(point: HookPoint): string {
  return pascalNameOfPoint(point)
    .replaceAll(/(?!^)([A-Z])/g, '_$1')
    .toLowerCase();
}

const BY_NAME: ReadonlyMap<string, HookPoint> = new Map(
  HOOK_POINTS.flatMap((point) => [
    [pascalNameOfPoint(point), point] as const,
    [snakeNameOfPoint(point), point] as const,
  ]),
);

/** The point with a name, in PascalCase or by its alias; undefined for an unknown name. */
export function hookPointOf(name: string): HookPoint | undefined {
  return BY_NAME.get(name);
}

/**
 * The pattern of a `loop_checkpoint` handler for kinds of seams: one, several, or `*` for all.
 * @returns a pattern on the payload of `loop_checkpoint`, or a sentence with the problem.
 */
export function checkpointPattern(
  kinds: string | readonly string[] = '*',
): { readonly pattern: string } | { readonly problem: string } {
  const list = typeof kinds === 'string' ? [kinds] : kinds;
  if (list.length === 0) return { problem: 'name one kind of seam at least, or "*"' };
  const unknown = list.find((kind) => kind !== '*' && !(SEAM_KINDS as readonly string[]).includes(kind));
  if (unknown !== undefined)
    return { problem: `there is no seam ${JSON.stringify(unknown)}; there are ${SEAM_KINDS.join(', ')}` };
  if (list.includes('*')) return { pattern: '*' };
  const named = SEAM_KINDS.filter((kind) => list.includes(kind));
  return {
    pattern: named.length === 1 ? `kind == ${JSON.stringify(named[0])}` : `kind =~ "^(${named.join('|')})$"`,
  };
}
