import { expect, test } from 'vitest';
import { checkedPayload } from '../src/command-form.ts';

const circle: Record<string, unknown> = {};
circle.again = circle;
let deep: unknown = [];
for (let i = 0; i < 50_000; i++) deep = [deep];

test.each([
  ['a circle', circle],
  ['a bigint', 1n],
  ['lists in lists without end', deep],
])('%s is no JSON, and the field that has it is named', (_what, data) => {
  expect(() => checkedPayload('signal', { name: 'tide', data }, undefined)).toThrow(
    expect.objectContaining({ code: 'invalid_field', field: 'data' }),
  );
});

test.each([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN])(
  '%d would be written as null: the field that has it is named',
  (number) => {
    expect(() => checkedPayload('signal', { name: 'tide', data: { at: [number] } }, undefined)).toThrow(
      expect.objectContaining({ code: 'invalid_field', field: 'data.at.0' }),
    );
  },
);
