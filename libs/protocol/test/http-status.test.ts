import { expect, test } from 'vitest';
import { type CatalogueEntry, ERROR_CATALOGUE, type ErrorCode, hasHttpStatus, httpStatusOf } from '../src/mod.ts';

const entries = Object.entries<CatalogueEntry>(ERROR_CATALOGUE) as [ErrorCode, CatalogueEntry][];

test('every rejection and every refusal says what it is over HTTP: somebody who sends a request will be answered with it', () => {
  expect(
    entries.filter(([code, { kind }]) => (kind === 'rejection' || kind === 'refusal') && !hasHttpStatus(code)),
  ).toEqual([]);
});

test('a rejection is never a fault of the server, but for what this release does not carry out', () => {
  const faults = entries.filter(
    ([code, { kind }]) => (kind === 'rejection' || kind === 'refusal') && httpStatusOf(code) >= 500,
  );
  expect(faults.map(([code]) => code)).toEqual(['not_yet_available']);
});

test('every code has a status that HTTP knows', () => {
  for (const [code] of entries)
    expect(httpStatusOf(code), code).toSatisfy((status: number) => status >= 400 && status < 600);
});

test('a code of a newer host is a refusal', () => {
  expect(httpStatusOf('a_code_of_tomorrow')).toBe(422);
});
