/**
 * Return values of handlers: JSON must be able to write them without a replacement.
 */
import { expect, test } from 'vitest';
import { returnProblem } from '../src/mod.ts';

class Refusal {
  deny = 'no';
}
const shared = { path: 'a' };

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'cut'],
  ['members that are not there', { block: true, reason: undefined }],
  ['an object without a prototype', Object.assign(Object.create(null), { deny: 'x' })],
  ['an object of a class', new Refusal()],
  ['what stands in it twice', { args: { one: shared, other: shared } }],
  ['what says itself how it is written', { args: { at: new Date(0), url: new URL('http://localhost') } }],
  ['a circle, which writing it finds', circle()],
])('%s is valid', (_what, raw) => {
  expect(returnProblem(raw)).toBeNull();
});

test.each<[unknown, string]>([
  [() => ({ deny: 'x' }), 'it is a function'],
  [Symbol('x'), 'it is a symbol'],
  [Number.NaN, 'it is NaN'],
  [new Error('no'), 'it is of the kind Error'],
  [{ deny: () => 'x' }, '"deny" is a function'],
  [{ args: { size: Number.POSITIVE_INFINITY } }, '"size" is Infinity'],
  [{ args: { size: 1n } }, '"size" is a BigInt'],
  [{ args: new Map([['path', 'a']]) }, '"args" is of the kind Map'],
  [{ args: [new Set(['a'])] }, '"0" is of the kind Set'],
  [{ deny: Promise.resolve('x') }, '"deny" is a promise: await it'],
  [{ args: { bytes: new Uint8Array(2) } }, '"bytes" is of the kind Uint8Array'],
])('a value that JSON would replace is reported: %#', (raw, problem) => {
  expect(returnProblem(raw)).toBe(problem);
});

function circle(): unknown {
  const one: Record<string, unknown> = {};
  one.args = one;
  return one;
}
