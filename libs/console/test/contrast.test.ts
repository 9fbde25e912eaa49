/** Colours: what is read stands out from its ground by 4.5 to 1 at least, and what is only seen by 3 to 1, in both themes. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const css = readFileSync(resolve(import.meta.dirname, '../src/styles/page.css'), 'utf8');
const colours = new Map(
  [...css.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light, dark }],
  ),
);

const READ = [
  ['text', ['ground', 'panel', 'sunken', 'running-ground']],
  ['faint', ['ground', 'panel', 'sunken']],
  ['accent', ['ground', 'panel', 'sunken']],
  ['on-accent', ['accent']],
  ['running', ['running-ground']],
  ['waiting', ['waiting-ground', 'ground', 'panel', 'sunken']],
  ['done', ['done-ground']],
  ['failed', ['failed-ground', 'ground', 'panel', 'sunken']],
  ['idle', ['idle-ground']],
] as const;

describe.each(['light', 'dark'] as const)('%s', (theme) => {
  const pairs = READ.flatMap(([ink, grounds]) => grounds.map((ground) => [ink, ground] as const));
  test.each(pairs)('%s is read on %s', (ink, ground) => {
    expect(contrast(colour(ink, theme), colour(ground, theme))).toBeGreaterThanOrEqual(4.5);
  });
  test.each([
    ['line-strong', 'ground'],
    ['line-strong', 'panel'],
    ['accent', 'running-ground'],
  ])('%s is seen on %s', (ink, ground) => {
    expect(contrast(colour(ink, theme), colour(ground, theme))).toBeGreaterThanOrEqual(3);
  });
});

function colour(name: string, theme: 'light' | 'dark'): string {
  const found = colours.get(name)?.[theme];
  if (found === undefined) throw new Error(`page.css has no colour --${name}`);
  return found;
}

/** The contrast ratio of WCAG 2. */
function contrast(one: string, other: string): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
