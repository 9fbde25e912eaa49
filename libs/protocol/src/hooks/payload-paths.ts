/**
 * Validates paths into payloads of hook points against their schemas.
 */
import * as z from 'zod';
import { nearestWord } from '../wire/nearest-word.ts';
import { HOOK_PAYLOADS } from './hook-payloads.ts';
import type { HookPoint } from './hook-points.ts';

/** Why a path exists in no payload of a point, or null. Below arguments and outputs every path is valid. */
export function payloadPathProblem(point: HookPoint, path: readonly string[]): string | null {
  return problemIn(HOOK_PAYLOADS[point], path, `a payload of ${point}`);
}

function problemIn(schema: unknown, [key, ...rest]: readonly string[], where: string): string | null {
  if (key === undefined) return null;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return problemIn(schema.unwrap(), [key, ...rest], where);
  if (schema instanceof z.ZodUnion) {
    const problems = schema.options.map((option) => problemIn(option, [key, ...rest], where));
    return problems.includes(null) ? null : (problems[0] ?? null);
  }
  if (schema instanceof z.ZodArray)
    return /^\d+$/.test(key)
      ? problemIn(schema.element, rest, `a member of ${where}`)
      : `${where} is a list: its members are named by number, not ${JSON.stringify(key)}`;
  if (schema instanceof z.ZodObject) {
    const shape: Readonly<Record<string, unknown>> = schema.shape;
    if (Object.hasOwn(shape, key)) return problemIn(shape[key], rest, `${JSON.stringify(key)} in ${where}`);
    const keys = Object.keys(shape);
    const near = nearestWord(key, keys);
    return `there is no ${JSON.stringify(key)} in ${where}; there are ${keys.join(', ')}${near === null ? '' : `; did you mean ${near}?`}`;
  }
  return SCALARS.some((scalar) => schema instanceof scalar) ? `${where} has no members` : null;
}

const SCALARS = [z.ZodString, z.ZodNumber, z.ZodBoolean, z.ZodEnum, z.ZodLiteral];
