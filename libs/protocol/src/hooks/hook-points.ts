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
  /** When hooks of the point are called, for people. */
  readonly fires: string;
}

const session = (fires: string, target: HookTarget = 'persona'): HookPointRow => ({
  surfaces: ['session'],
  target,
  fires,
});
const tool = (fires: string): HookPointRow => ({ surfaces: ['tool'], target: 'tool name', fires });
const persona = (fires: string, target: HookTarget = 'persona'): HookPointRow => ({
  surfaces: ['persona', 'step'],
  target,
  fires,
});

/** The catalogue. The readers of registrations, the generated reference and the tests all read this table. */
export const HOOK_CATALOGUE: Readonly<Record<HookPoint, HookPointRow>> = {
  session_start: session('a run begins, before its loop'),
  user_prompt_submit: session('before the agent sees a prompt, a follow-up or a steer; `origin` says which'),
  pre_compact: session('before a compaction that is due'),
  post_compact: session('after a compaction'),
  transform_context: session('before a model request; the handler is shown the messages'),
  PreToolUse: tool('for each call, in call order, before the gate'),
  gate_tool_calls: session('once for the whole batch, before anything of it runs'),
  permission_asked: session('the rules want to ask a person about a call', 'tool name'),
  permission_replied: session('it is decided whether a call may run; nothing waits for the answer', 'tool name'),
  PostToolUse: tool('a call has returned, also one that threw'),
  post_turn: session('a turn is recorded, before it is decided whether to go on'),
  file_edited: session('at the boundary of a turn, for each file that it has edited', 'path'),
  session_idle: session('each time a daemon session begins to wait'),
  pre_suspend: session('before a suspension takes hold'),
  post_resume: session('after a suspension'),
  session_error: session('before session_end, when the run ended in error'),
  session_end: session('after the loop'),
  pre_finish: session('before the finish callback, also where there is none'),
  on_unsettled_detected: session('between pre_finish and post_finish, when something is unsettled'),
  post_finish: session('after the finish callback, also where there is none'),
  loop_checkpoint: {
    surfaces: ['checkpoint', 'session'],
    target: 'kind of seam',
    fires: 'each pass of a seam; nothing waits for the answer',
  },
  PreStep: persona('before a declared step of a persona', 'persona.step'),
  PostStep: persona('after a declared step has come to its answer', 'persona.step'),
  OnApprovalRequested: persona(
    'a call waits for a person; the call does not wait for these hooks, but a denial by one ends the wait',
  ),
  OnHandoffEmitted: persona('the session is about to go to another persona'),
  OnPersonaPaused: persona('a step of the session waits, because its persona is paused; nothing waits for the answer'),
  OnPersonaResumed: persona('its persona is paused no more, and the session goes on; nothing waits for the answer'),
  OnBudgetThreshold: persona(
    'a part of a budget is used up: at `pct` percent, or at 50, 80, 95 and 100; once each in a run',
  ),
};

/** Percentages of a budget at which a registration without a percentage is called. */
export const BUDGET_HOOK_PERCENTAGES: readonly number[] = [50, 80, 95, 100];

/**
 * The name of a point in PascalCase, as in documentation and the code of users. Journals and the bus use the names in
 * {@link HOOK_POINTS}.
 */
export function hookPointName(point: HookPoint): string {
  return point.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The name of a point in snake_case, which registrations accept as well: `pre_tool_use` for `PreToolUse`. */
export function hookPointAlias(point: HookPoint): string {
  return hookPointName(point)
    .replaceAll(/(?!^)([A-Z])/g, '_$1')
    .toLowerCase();
}

const BY_NAME: ReadonlyMap<string, HookPoint> = new Map(
  HOOK_POINTS.flatMap((point) => [[hookPointName(point), point] as const, [hookPointAlias(point), point] as const]),
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
