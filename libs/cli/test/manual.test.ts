/** The pages for `man`: as roff, and as the programs that read it set them. One that is not on this machine is passed over by name. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/line/command-table.ts';
import { manualOf, manualOfCommand } from '../src/line/man-page.ts';

const pages = [manualOf(COMMANDS, '1.2.3'), ...COMMANDS.map((command) => manualOfCommand(command, '1.2.3'))];

test('every command has its page, with each of its flags', () => {
  for (const command of COMMANDS) {
    const page = manualOfCommand(command, '1.2.3');
    expect(page).toContain(`.TH "COX\\-${command.name.toUpperCase().replaceAll('-', '\\-')}" 1`);
    for (const spec of [command, ...(command.parts ?? [])])
      for (const name of Object.keys(spec.flags)) expect(page, name).toContain(`"\\-\\-${name.replaceAll('-', '\\-')}`);
  }
  for (const { name } of COMMANDS) expect(pages[0]).toContain(`"cox ${name.replaceAll('-', '\\-')}`);
});

test('no line of text is taken for a request, and nothing but ASCII stands in a page', () => {
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

  test.skipIf(!isThere)(`${program} sets every page without a warning`, () => {
    // One after another in one input: a process for each page would take most of a minute on a busy machine.
    const { status, stdout, stderr } = spawnSync(program, [...flags], {
      input: pages.join(''),
      encoding: 'utf8',
      maxBuffer: 16 * 1024 * 1024,
      env: { PATH: process.env.PATH, MANWIDTH: '100', LC_ALL: 'C', HOME: '/' },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const { name } of COMMANDS) expect(stdout).toContain(`COX-${name.toUpperCase()}(1)`);
  });
});
