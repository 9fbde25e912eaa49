/** The JSON Schemas of the npm package and of the site can be made, and other languages' tools can read them. */
import { HOOK_PAYLOADS, HOOK_POINTS, pascalNameOfPoint } from '@coxswain/protocol';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { schemaFiles, schemaReference } from '../../scripts/reference/schemas.ts';

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const schemaOf = (file: string) => JSON.parse(schemaFiles[file]?.() ?? 'null');

describe('a valid JSON Schema, listed in docs/reference/schemas.md', () => {
  const page = schemaReference();
  test.each(Object.keys(schemaFiles))('%s', (file) => {
    expect(ajv.validateSchema(schemaOf(file))).toBe(true);
    expect(page).toContain(`| \`${file}\` |`);
  });
});

test.each(HOOK_POINTS)('the schema of %s has exactly the members of its payload', (point) => {
  const { type, additionalProperties, properties } = schemaOf(`hook-${pascalNameOfPoint(point)}.json`);
  expect({ type, additionalProperties }).toEqual({ type: 'object', additionalProperties: false });
  expect(properties.event).toEqual({ type: 'string', const: point });
  expect(Object.keys(properties)).toEqual(Object.keys(HOOK_PAYLOADS[point].shape));
});

test('a schema rejects an unknown member, and accepts a body without its optional members', () => {
  const steer = ajv.compile(schemaOf('command-steer.json'));
  expect([{ body: 'Not that file.' }, { body: 'x', mood: 'bad' }, {}].map((body) => steer(body))).toEqual([
    true,
    false,
    false,
  ]);
});
