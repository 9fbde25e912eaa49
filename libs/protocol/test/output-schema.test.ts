/**
 * Output schemas: valid ones, and the validation of answers.
 */
import { describe, expect, test } from 'vitest';
import { BOUNDS, OutputSchema } from '../src/mod.ts';
import { checkOutput, unusableOutputSchema } from '../src/personas/check-output.ts';
import { OutputCheck, outputSchemaProblem } from '../src/personas/output-schema.ts';

const INVOICE = {
  type: 'object',
  properties: {
    id: { type: 'string', pattern: '^I-[0-9]+$' },
    lines: { type: 'array', items: { $ref: '#/$defs/line' } },
    state: { enum: ['open', 'paid'] },
  },
  required: ['id', 'lines'],
  additionalProperties: false,
  $defs: { line: { type: 'object', properties: { price: { type: 'number', minimum: 0 } }, required: ['price'] } },
};
const FITTING = { id: 'I-1', lines: [{ price: 2 }] };

describe('an output schema is rejected', () => {
  const doubling = (levels: number) => ({
    $ref: '#/$defs/d0',
    $defs: Object.fromEntries(
      Array.from({ length: levels }, (_, i) => [
        `d${i}`,
        i === levels - 1
          ? { type: 'string' }
          : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    ),
  });
  test.each([
    ['recursive', { properties: { next: { $ref: '#' } } }, 'recursive'],
    ['exponential by its references', doubling(30), 'subschemas'],
    ['a reference to another document', { $ref: 'https://example.com/a.json' }, 'no schema there'],
    ['a reference to nothing', { $ref: '#/$defs/line' }, 'no schema there'],
    ['an anchor', { properties: { a: { $anchor: 'a' } } }, '$anchor'],
    ['an id below the root', { properties: { a: { $id: 'https://example.com/a' } } }, '$id'],
    ['a pattern that RE2 does not run', { properties: { a: { pattern: '(?=a)b' } } }, 'without lookaround'],
    [
      'an unknown type',
      { properties: { total: { type: 'strin' } } },
      'properties.total.type: must be one of array, bool',
    ],
    ['an unknown type in a list', { type: ['string', 'nul'] }, 'type: must be one of'],
    ['a keyword of another type', { items: { minimum: 'two' } }, 'items.minimum: must be a number, not "two"'],
    ['a schema that is a text', { anyOf: [{ type: 'null' }, 'string'] }, 'anyOf: must be a list of schemas'],
    ['a pattern of names', { patternProperties: { '(a)\\1': {} } }, 'without lookaround'],
  ])('%s', (_, schema, words) => {
    expect(outputSchemaProblem(schema)).toContain(words);
    expect(OutputSchema.safeParse(schema).success).toBe(false);
  });

  test('at the start of a run, if only a validator finds the problem', () => {
    const schema = { uniqueItems: 'yes' };
    expect(outputSchemaProblem(schema)).toBeNull();
    expect(unusableOutputSchema(schema)).toEqual(expect.any(String));
  });

  test('never because of property names and values that look like keywords', () => {
    const schema = { properties: { $anchor: { enum: [{ $ref: '#' }] }, pattern: { const: { pattern: '(?=a)' } } } };
    expect(outputSchemaProblem(schema)).toBeNull();
    expect(unusableOutputSchema({ ...INVOICE, $schema: 'https://json-schema.org/draft/2020-12/schema' })).toBeNull();
  });
});

describe('the JSON of an answer', () => {
  const text = JSON.stringify(FITTING);
  test.each([
    ['stands alone', ` ${text}\n`],
    ['is in a code fence', `\`\`\`json\n${text}\n\`\`\``],
    ['is in a code fence, with text around it', `Here it is:\n\`\`\`\n${text}\n\`\`\`\nDone.`],
  ])('%s', (_, answer) => {
    expect(checkOutput(INVOICE, answer)).toEqual({ value: FITTING });
  });

  test('may itself contain code fences', () => {
    const value = { id: '```a```' };
    expect(checkOutput({ type: 'object' }, JSON.stringify(value))).toEqual({ value });
  });

  test('may be any value that the schema accepts', () => {
    expect(checkOutput({ type: 'array' }, '[1]')).toEqual({ value: [1] });
    expect(checkOutput({ type: ['string', 'null'] }, 'null')).toEqual({ value: null });
  });

  test('is recordable: an answer that a record cannot contain is a problem', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    for (const depth of [BOUNDS.jsonDepthMax, BOUNDS.jsonDepthMax + 1]) {
      const check = checkOutput({}, nested(depth));
      expect('value' in check).toBe(depth === BOUNDS.jsonDepthMax);
      expect(OutputCheck.safeParse(check).success).toBe(true);
    }
  });

  test.each([
    ['', 'The answer is empty.'],
    ['Sure, I can do that.', 'The answer is not valid JSON'],
    ['{"id":"I-1","id":"I-2","lines":[]}', 'the member "id" is repeated'],
    ['{"id":"I-1","lines":[{"price":1e999}]}', 'lines.0.price: the number is too large'],
    ['{"id":"\\ud800","lines":[]}', 'lone surrogate'],
  ])('%j is rejected: %s', (answer, words) => {
    expect(checkOutput(INVOICE, answer)).toEqual({ problems: [expect.stringContaining(words)] });
  });
});

test('each problem names its path and the expected value', () => {
  const answer = { id: 'x', lines: [{ price: -1 }, {}], state: 'lost', extra: 1 };
  expect(checkOutput(INVOICE, JSON.stringify(answer))).toEqual({
    problems: [
      'must not have the property "extra"',
      'id: must match pattern "^I-[0-9]+$"',
      'lines[0].price: must be >= 0',
      "lines[1]: must have required property 'price'",
      'state: must be one of "open", "paid"',
    ],
  });
});

test('an answer that is too long for the patterns of its schema is rejected, also by a negated one', () => {
  const schema = { type: 'string', not: { pattern: '[ab]{400}c' } };
  expect(checkOutput(schema, JSON.stringify('ab'.repeat(100)))).toEqual({ value: 'ab'.repeat(100) });
  expect(checkOutput(schema, JSON.stringify('ab'.repeat(50_000)))).toEqual({
    problems: ['The texts are too long for the patterns of the output schema.'],
  });
});

test('a pattern takes linear time', () => {
  const schema = { type: 'string', pattern: '^(a+)+$' };
  expect(checkOutput(schema, JSON.stringify(`${'a'.repeat(50_000)}b`))).toEqual({ problems: [expect.any(String)] });
});

test('problems beyond the bound are counted', () => {
  const { problems } = checkOutput(
    { type: 'array', items: { type: 'string' } },
    JSON.stringify(Array.from({ length: 20 }, (_, i) => i)),
  ) as { problems: string[] };
  expect(problems).toHaveLength(BOUNDS.outputProblemsMax);
  expect(problems.at(-1)).toBe('13 more problems');
});
