/**
 * Reads registrations from files and code. It also rejects a condition on a path that no payload of the point has, and
 * a constant return without a meaning at the point.
 */
import * as z from 'zod';
import type { ErrorCode } from '../catalogues/error-codes.ts';
import { parseHookPattern } from '../tools/patterns.ts';
import { listOf } from '../wire/containers.ts';
import { nearestWord } from '../wire/nearest-word.ts';
import { readStrictly, type SchemaProblem } from '../wire/schema-problems.ts';
import {
  checkpointPattern,
  HOOK_CATALOGUE,
  HOOK_POINTS,
  HOOK_SURFACES,
  type HookPoint,
  hookPointOf,
  pascalNameOfPoint,
  snakeNameOfPoint,
} from './hook-points.ts';
import { HookRegistration, REGISTRATION_FIELDS } from './hook-registrations.ts';
import { isHookFailure, parseReturn } from './parse-return.ts';
import { payloadPathProblem } from './payload-paths.ts';

/** A registration as written in a file or in code. */
export const WrittenRegistration = z.strictObject({
  ...REGISTRATION_FIELDS,
  /** In snake_case or PascalCase. A budget's point may contain its percentage: `OnBudgetThreshold(80)`. */
  point: z.string(),
  /** Checked against the point, if given. */
  surface: z.enum(HOOK_SURFACES).optional(),
  /** At `loop_checkpoint`: the kinds of seams, instead of a pattern. */
  kinds: z.union([z.string(), listOf(z.string())]).optional(),
});
/** A registration before defaults. */
export type HookRegistrationInput = z.input<typeof WrittenRegistration>;

/** The problem of a registration: a catalogued code, a sentence, and the affected field. */
export interface RegistrationProblem {
  readonly code: Extract<ErrorCode, 'unknown_hook_point' | 'invalid_pattern' | 'invalid_field' | 'unknown_field'>;
  readonly message: string;
  readonly field: string;
}

/** The registration for sessions, or its problem. */
export type ReadRegistration =
  | { readonly ok: true; readonly registration: HookRegistration }
  | { readonly ok: false; readonly problem: RegistrationProblem };

/** Parses a registration. Never throws. */
export function readRegistration(written: unknown): ReadRegistration {
  const parsed = readStrictly(WrittenRegistration, written);
  if (!parsed.ok) return refusedBy(parsed.problems[0]);
  const { point: name, surface, kinds, ...fields } = parsed.data;
  const budget = /^(\w+)\((\d{1,3})\)$/.exec(name);
  const point = hookPointOf(budget?.[1] ?? name);
  if (point === undefined || (budget && point !== 'OnBudgetThreshold'))
    return refused('unknown_hook_point', 'point', `there is no hook point ${JSON.stringify(name)}${meant(name)}`);
  if (surface !== undefined && !HOOK_CATALOGUE[point].surfaces.includes(surface)) {
    const taken = HOOK_CATALOGUE[point].surfaces.join(' or ');
    return refused(
      'invalid_field',
      'surface',
      `${pascalNameOfPoint(point)} is a point of the surface ${taken}, not of ${surface}`,
    );
  }
  const pattern = patternOf(point, kinds, isGiven(written, 'pattern') ? fields.pattern : undefined);
  if ('problem' in pattern) return refused('invalid_pattern', 'kinds', pattern.problem);
  if (budget && fields.pct !== undefined)
    return refused('invalid_field', 'pct', 'the name of the point says the percentage already');
  const pct = budget ? { pct: Number(budget[2]) } : {};
  const registration = readStrictly(HookRegistration, { ...fields, point, ...pattern, ...pct });
  if (!registration.ok) return refusedBy(registration.problems[0]);
  const astray = pathProblem(point, registration.data.pattern);
  if (astray !== null) return refused('invalid_pattern', 'pattern', astray);
  const meaningless = returnsProblem(point, registration.data);
  if (meaningless !== null) return refused('invalid_field', 'returns', meaningless);
  return { ok: true, registration: registration.data };
}

function patternOf(
  point: HookPoint,
  kinds: string | readonly string[] | undefined,
  pattern: string | undefined,
): { readonly pattern?: string } | { readonly problem: string } {
  if (kinds === undefined) return pattern === undefined ? {} : { pattern };
  if (point !== 'loop_checkpoint') return { problem: 'kinds of seams are for LoopCheckpoint only' };
  if (pattern !== undefined) return { problem: 'give kinds or a pattern, not both' };
  return checkpointPattern(kinds);
}

function isGiven(written: unknown, field: string): boolean {
  return (written as Record<string, unknown>)[field] !== undefined;
}

function refused(code: RegistrationProblem['code'], field: string, message: string): ReadRegistration {
  return { ok: false, problem: { code, field, message: `${field}: ${message}` } };
}

function meant(name: string): string {
  const near = nearestWord(name, [...HOOK_POINTS.map(pascalNameOfPoint), ...HOOK_POINTS.map(snakeNameOfPoint)]);
  const point = near === null ? undefined : hookPointOf(near);
  return point === undefined ? '' : `; did you mean ${pascalNameOfPoint(point)}?`;
}

// A condition on a path that no payload of the point has would never be true, and its hook never be called.
function pathProblem(point: HookPoint, text: string): string | null {
  const pattern = parseHookPattern(text);
  if (typeof pattern === 'string' || pattern.kind !== 'condition') return null;
  return payloadPathProblem(point, pattern.condition.path);
}

// An answer about one batch, one view or one job cannot be constant.
function returnsProblem(point: HookPoint, { returns, deny }: HookRegistration): string | null {
  if (returns === undefined) return null;
  // Usually a key without a value. The explicit form of no objection is `true`.
  if (returns === null) return 'is empty: say what a handler would return';
  if (deny !== undefined) return 'deny denies already: give one of them';
  if (point === 'gate_tool_calls' || point === 'transform_context')
    return `${pascalNameOfPoint(point)} needs a handler, because its payload varies`;
  const parsed = parseReturn(point, returns);
  if (isHookFailure(parsed)) return parsed.message;
  return parsed.verdict.kind === 'job' ? 'only a handler can start a job' : null;
}

const PATTERN_FIELDS: readonly string[] = ['pattern', 'persona', 'step'];

function refusedBy({ kind, path, words }: SchemaProblem): ReadRegistration {
  const field = path.join('.') || 'registration';
  if (kind === 'unknown_key') return refused('unknown_field', field, `no registration has this field${words}`);
  return refused(PATTERN_FIELDS.includes(field) ? 'invalid_pattern' : 'invalid_field', field, words);
}
