import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PLANTED_FAULTS } from './planted-faults.ts';

const sources = resolve(import.meta.dirname, '../../libs/turn/src');

describe('a planted fault fits its source:', () => {
  test.each(PLANTED_FAULTS)('$name', ({ file, find, instead }) => {
    const pieces = readFileSync(`${sources}/${file}`, 'utf8').split(find);
    expect(pieces).toHaveLength(2);
    expect(instead).not.toBe(find);
  });
});
