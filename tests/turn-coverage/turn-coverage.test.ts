import { describe, expect, test } from 'vitest';
import { turnCoverage } from './turn-coverage.ts';

describe.each(turnCoverage())('$title: a named test exercises', ({ parts }) => {
  test.each([...parts.keys()])('%s', (part) => {
    expect(parts.get(part)).not.toEqual([]);
  });
});
