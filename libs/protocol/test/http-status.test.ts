import { expect, test } from 'vitest';
import { type CatalogueEntry, ERROR_CATALOGUE, type ErrorCode, hasHttpStatus, httpStatusOf } from '../src/mod.ts';

const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE) as [ErrorCode, CatalogueEntry][];

test('every rejection and every refusal has a status of its own', () => {
  expect(
    entries.filter(([code, { kind }]) => (kind === 'rejection' || kind === 'refusal') && !hasHttpStatus(code)),
  ).toEqual([]);
});

test('a rejection is never a server error, except for a missing implementation', () => {
  const faults = entries.filter(
    ([code, { kind }]) => (kind === 'rejection' || kind === 'refusal') && httpStatusOf(code) >= 500,
  );
  expect(faults.map(([code]) => code)).toEqual(['not_yet_available']);
});

test('every code has a valid HTTP status', () => {
  for (const [code] of entries)
    expect(httpStatusOf(code), code).toSatisfy((status: number) => status >= 400 && status < 600);
});

test('an unknown code is a client error', () => {
  expect(httpStatusOf('a_code_of_tomorrow')).toBe(422);
});
