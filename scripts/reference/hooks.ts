/** The reference of hooks: points, payloads and returns, from the catalogue, the schemas and the table of returns. */
import {
  HOOK_CATALOGUE,
  HOOK_MOMENTS,
  HOOK_PAYLOADS,
  HOOK_POINTS,
  HOOK_RETURNS,
  type HookPoint,
  pascalNameOfPoint,
  type ReturnRow,
} from '@coxswain/protocol';
import { z } from 'zod';
import { code, generatedFrom, table } from './markdown.ts';

const SOURCES = ['hook-points', 'hook-payloads', 'hook-registrations', 'hook-returns', 'job-receipts'].map(
  (name) => `libs/protocol/src/hooks/${name}.ts`,
);
const RETURNS: readonly ReturnRow[] = Object.values(HOOK_RETURNS);
/** Returns that nearly every point accepts. The text above the table mentions them once. */
const EVERYWHERE: readonly ReturnRow[] = [HOOK_RETURNS.nothing, HOOK_RETURNS.reminder, HOOK_RETURNS.body];

/** The text of docs/reference/hooks.md. */
export function hookReference(): string {
  return [
    generatedFrom(...SOURCES),
    '# Hooks\n',
    'Every hook point with its payload and its returns. [Hooks](../guides/hooks.md) explains how to write one,',
    '[run hooks](../guides/run-hooks.md) how to run it.\n',
    '## Points\n',
    'Points have names in `PascalCase`. Code and files also accept `snake_case`. Journals, payloads and the bus use the spelling of the second',
    'column. The glob of a registration is matched against the target. A handler may also return nothing, or add reminders.\n',
    table(
      ['Point', 'In journals', 'Surface', 'Fires', 'May return', 'Target'],
      HOOK_POINTS.map((point) => [
        named(point),
        code(point),
        HOOK_CATALOGUE[point].surfaces.join(', '),
        HOOK_MOMENTS[point],
        returnsOf(point),
        HOOK_CATALOGUE[point].target,
      ]),
    ),
    '',
    '## Names\n',
    'The names below are those of files, requests, replies and journals. TypeScript and JavaScript use camelCase: `tool.call_id` is',
    '`tool.callId`, `is_error` is `isError`, `timeout_ms` is `timeoutMs`. This applies to payloads, returns, receipts and settings. It does not apply',
    'to names in arguments, outputs, metadata and other data, and to conditions of a `pattern`.\n',
    '## Returns\n',
    'Another return, for example with a misspelt key, is `verdict_invalid`. A return without meaning at the point is `verdict_not_allowed`. Both',
    'errors name the key and the point, and deny the operation. In TypeScript and JavaScript the [helpers](../guides/hooks.md#what-a-handler-returns)',
    '`allow`, `deny`, `ask`, `rewrite`, `remind` and `startJob` make these returns.\n',
    table(
      ['Return', 'Meaning', 'Where'],
      RETURNS.map(({ written, means, points }) => [written, means, placesOf(points)]),
    ),
    '',
    '## Payloads\n',
    'All payloads have `event` (the point), `session.id`, `persona` and `turn`. Payloads have no other members than these.\n',
    table(
      ['Point', 'Further members'],
      HOOK_POINTS.map((point) => [named(point), fieldsOf(HOOK_PAYLOADS[point], COMMON).join(', ')]),
    ),
    '',
    'Payloads, registrations and job receipts have [JSON Schemas](schemas.md).\n',
  ].join('\n');
}

const named = (point: HookPoint): string => code(pascalNameOfPoint(point));

const COMMON: ReadonlySet<string> = new Set(['event', 'session', 'persona', 'turn']);
const options = { io: 'input', unrepresentable: 'any' } as const;

function returnsOf(point: HookPoint): string {
  return RETURNS.filter((row) => !EVERYWHERE.includes(row) && row.points.includes(point))
    .map(({ written }) => written)
    .join(' · ');
}

function placesOf(points: readonly HookPoint[]): string {
  return points.length === HOOK_POINTS.length ? 'every point' : points.map(named).join(', ');
}

function fieldsOf(schema: z.ZodType, without: ReadonlySet<string>): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, options);
  return Object.keys(properties)
    .filter((name) => !without.has(name))
    .map((name) => code(required.includes(name) ? name : `${name}?`));
}
