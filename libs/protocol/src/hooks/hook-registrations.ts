/**
 * Registrations of hooks: the point, the order of calls, and the effect of a failure.
 */
import * as z from 'zod';
import { globMatches, hookGlobProblem, hookPatternMatches, parseHookPattern } from '../tools/patterns.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { withNames } from '../wire/casing.ts';
import { listOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { Json } from '../wire/json.ts';
import type { RegexBudget } from '../wire/regular-expressions.ts';
import { HOOK_CATALOGUE, HookPoint } from './hook-points.ts';
import { AnyReturn } from './return-names.ts';

const HookGlob = z
  .string()
  .max(BOUNDS.patternMaxChars)
  .superRefine((text, context) => {
    const problem = hookGlobProblem(text);
    if (problem) context.addIssue({ code: 'custom', message: problem });
  });

const encoder = new TextEncoder();

/** A constant return value: no handler is called. */
const Returns = withNames(
  Json.refine((value) => encoder.encode(JSON.stringify(value)).length <= BOUNDS.hookReturnsMaxBytes, {
    error: `has at most ${BOUNDS.hookReturnsMaxBytes} bytes as JSON`,
  }),
  () => AnyReturn,
);

const PatternText = z.string().superRefine((text, context) => {
  const parsed = parseHookPattern(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
});

/** The members of a registration, without its point. */
export const REGISTRATION_FIELDS = {
  id: z.string().regex(ID_PATTERN, { error: 'a hook id is 1 to 64 characters of A-Z a-z 0-9 _ -' }),
  /** A glob on the point's target, or a condition on the payload. */
  pattern: PatternText.default('*'),
  /** Only for sessions with a persona that this glob matches. */
  persona: HookGlob.optional(),
  /** Only for steps that this glob matches. */
  step: HookGlob.optional(),
  /** At `OnBudgetThreshold`: the percentage; by default 50, 80, 95 and 100. */
  pct: z.number().int().min(1).max(100).optional(),
  /** Lower numbers are called first, after the persona's own hooks ({@link inCallOrder}). */
  priority: z.number().int().min(-1_000).max(1_000).default(0),
  /** For equal priorities, hooks of a manifest are called before all others. */
  source: z.enum(['manifest', 'code']).optional(),
  timeout_ms: z.number().int().min(1).max(BOUNDS.hookTimeoutMaxMs).default(5_000),
  /**
   * Whether a failure counts as a refusal, which ends the chain. A wrong answer always counts (`isWrongAnswer`, verdicts.ts).
   * It has no effect at points where no failure refuses ({@link failureRefusesAt}, hook-returns.ts).
   */
  on_error: z.enum(['fail_closed', 'fail_open']).default('fail_closed'),
  /** At `PreToolUse`: denies every matching call with this reason, without a handler. */
  deny: z.string().min(1).max(BOUNDS.reasonMaxBytes).optional(),
  /** At `PostToolUse`: maximum length of the result's text in characters, applied after the handler. */
  max_output: z.number().int().min(1).max(BOUNDS.toolResultKeptMaxBytes).optional(),
  /** A constant return, without a handler. */
  returns: Returns.optional(),
  /** The registration has no handler: it only applies `max_output`. */
  no_handler: z.literal(true).optional(),
  /** No instance of its service is alive: its handler is not called, and `on_error` decides. */
  unavailable: z.literal(true).optional(),
} as const;

interface Refined {
  readonly point: HookPoint;
  readonly step?: string | undefined;
  readonly pct?: number | undefined;
  readonly deny?: string | undefined;
  readonly max_output?: number | undefined;
  readonly no_handler?: true | undefined;
}

// Members for one point would be ignored at another without notice.
function refine(registration: Refined, context: z.core.$RefinementCtx): void {
  const refuse = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message });
  const { point, step, pct, deny, max_output, no_handler } = registration;
  if (step !== undefined && !HOOK_CATALOGUE[point].surfaces.includes('step'))
    refuse('step', `${point} is not a hook point of a step`);
  if (pct !== undefined && point !== 'OnBudgetThreshold') refuse('pct', 'it is for OnBudgetThreshold only');
  if (deny !== undefined && point !== 'PreToolUse') refuse('deny', 'it is for PreToolUse only');
  if (max_output !== undefined && point !== 'PostToolUse') refuse('max_output', 'it is for PostToolUse only');
  if (no_handler && max_output === undefined) refuse('no_handler', 'it goes with max_output only');
}

/** The id of a registration in a session. The id of a persona's own hook starts with the persona's name and a colon. */
export const HookId = z.string().regex(/^(?:[A-Za-z0-9_-]{1,64}:)?[A-Za-z0-9_-]{1,64}$/);

/** One registration in the table of a session. */
export const HookRegistration = z
  .strictObject({
    point: HookPoint,
    ...REGISTRATION_FIELDS,
    id: HookId,
    /**
     * The registration is one of the persona's own hooks. An instance that serves this version of the persona is
     * called.
     */
    persona_version: z.string().min(1).max(128).optional(),
  })
  .superRefine(refine);
export type HookRegistration = z.infer<typeof HookRegistration>;

/**
 * A list of registrations. An id occurs at most once at a point. The table of a session has the order of calls
 * ({@link inCallOrder}).
 */
export const HookTable = listOf(HookRegistration)
  .max(BOUNDS.hooksMax)
  .superRefine((table, context) => {
    const twice = registeredTwice(table);
    if (twice) context.addIssue({ code: 'custom', message: `hook ${twice.id} is registered twice at ${twice.point}` });
  });
export type HookTable = z.infer<typeof HookTable>;

/** The first registration with an id that already occurs at its point, or undefined. */
export function registeredTwice(
  table: readonly Pick<HookRegistration, 'id' | 'point'>[],
): Pick<HookRegistration, 'id' | 'point'> | undefined {
  const seen = new Set<string>();
  return table.find(({ id, point }) => seen.size === seen.add(`${id} ${point}`).size);
}

/**
 * Sorts registrations from the order of registration into the order of calls: by owner, priority and source. A persona's
 * own hooks come first, with any priority, so that hooks of the host's operator can refuse or rewrite what they let
 * through. Of equal priorities, hooks of a manifest come first, then the others in the order of registration.
 */
export function inCallOrder(registrations: readonly HookRegistration[]): HookRegistration[] {
  const owner = (registration: HookRegistration) => (isOfPersona(registration) ? 0 : 1);
  const rank = ({ source }: HookRegistration) => (source === 'manifest' ? 0 : 1);
  // Array.prototype.sort is stable: equal registrations keep their order.
  return [...registrations].sort((a, b) => owner(a) - owner(b) || a.priority - b.priority || rank(a) - rank(b));
}

/** Whether a registration belongs to a persona, not to a manifest or a hook service. */
export function isOfPersona({ persona_version }: Pick<HookRegistration, 'persona_version'>): boolean {
  return persona_version !== undefined;
}

/** The values at a call of a hook point that registrations are matched against. */
export interface HookOccasion {
  readonly persona: string;
  /** The target of the point. */
  readonly target: string;
  readonly step?: string | undefined;
  /** Undefined if it is not known yet: conditions on it count as true. */
  readonly payload: Json | undefined;
  /** For the conditions of all registrations: those that it does not cover count as true. */
  readonly budget?: RegexBudget | undefined;
}

/** Whether a registration matches a call of its point. */
export function registrationMatches(registration: HookRegistration, occasion: HookOccasion): boolean {
  const { persona, step, pattern } = registration;
  if (persona !== undefined && !globMatches(persona, occasion.persona)) return false;
  if (step !== undefined && (occasion.step === undefined || !globMatches(step, occasion.step))) return false;
  return hookPatternMatches(pattern, occasion.target, occasion.payload, occasion.budget);
}
