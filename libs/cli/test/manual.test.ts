/** The man pages: their roff, and their output of groff, mandoc and man. Programs that are not installed are skipped. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/line/mod.ts';
import { runCox } from './run-cox.ts';

const manual = async (...words: string[]) => (await runCox(['help', ...words, '--man'])).out;
const titles = new Set(COMMANDS.map(({ name }) => name.split(' ')[0] as string));
const others = new Map<string, string>();
for (const title of titles) others.set(`cox-${title}`, await manual(title));
const pages = [await manual(), ...others.values()];
const dashed = (text: string) => text.replaceAll('-', '\\-');

test('every command has a page with each of its flags', () => {
  for (const { name, flags } of COMMANDS) {
    const title = `cox-${name.split(' ')[0]}`;
    const page = others.get(title);
    expect(page).toContain(`.TH "${dashed(title).toUpperCase()}" 1`);
    expect(page).toContain(`.B "cox ${dashed(name)}"`);
    for (const flag of Object.keys(flags)) expect(page, flag).toContain(dashed(`--${flag}`));
    expect(pages[0]).toContain(`"cox ${dashed(name)}`);
  }
});

test('no line of text is a roff request, and pages are ASCII only', () => {
  for (const page of pages) {
    expect(page).toMatch(/^[\x20-\x7e\n]*$/);
    for (const line of page.split('\n')) if (/^[.']/.test(line)) expect(line).toMatch(/^\.(\\"|[A-Za-z]{1,2}( |$))/);
  }
});

const SETTERS: Readonly<Record<string, readonly string[]>> = {
  groff: ['-man', '-Tascii', '-ww', '-P-cbou'],
  mandoc: ['-Tascii', '-W', 'warning'],
  man: ['--warnings', '-E', 'ascii', '-l', '-'],
};

describe.each(Object.entries(SETTERS))('%s', (program, flags) => {
  const isThere = spawnSync(program, ['--version']).error === undefined;

  test.skipIf(!isThere)(`${program} formats every page without a warning`, () => {
    // One after another in one input: a process for each page would take most of a minute on a busy machine.
    const { status, stdout, stderr } = spawnSync(program, [...flags], {
      input: pages.join(''),
      encoding: 'utf8',
      maxBuffer: 16 * 1024 * 1024,
      env: { PATH: process.env.PATH, MANWIDTH: '100', LC_ALL: 'C', HOME: '/' },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const name of others.keys()) expect(stdout).toContain(`${name.toUpperCase()}(1)`);
  });
});
