/**
 * Plain English in what people read: standard words, short sentences, short lines of help. The texts are collected by
 * `reader-texts.ts`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  COMMAND_HELP,
  ERROR_TEXTS,
  findings,
  HELP_LINES,
  type ReaderText,
  textsOfDocstrings,
  textsOfMarkdown,
  textsOfStrings,
} from './reader-texts.ts';

const repository = resolve(import.meta.dirname, '..');

/** Paths whose texts are still to be rewritten. A path leaves the list with its last finding. */
const NOT_YET = [
  // Subjects are long lists without a full stop.
  'docs/reference/roles.md',
  'tests/',
];

/** Files whose strings are programs, not sentences. */
const CODE_IN_STRINGS = [
  'libs/adapters/embedded-server/src/start/server-process.ts',
  'libs/cli/src/completions/',
  'libs/cli/src/demo/story.ts',
  'services/gateway/src/routes/open-api-page.ts',
];

const startsWithOneOf = (file: string, paths: readonly string[]): boolean =>
  paths.some((path) => file.startsWith(path));

const files = execFileSync('git', ['-c', 'safe.directory=*', 'ls-files'], { cwd: repository, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !startsWithOneOf(file, NOT_YET) && existsSync(join(repository, file)));

/** Parsing every source takes seconds: most files have no unusual word and no line of a long sentence. */
const maySay = (text: string): boolean =>
  findings({ at: '', text: text.replace(/^\s*\/?\*+/gm, '') }).some((one) => !/ \d+ words: /.test(one)) ||
  /[^\n]{130}/.test(text);

function findingsOf(
  governs: (file: string) => boolean,
  textsOf: (file: string, text: string) => ReaderText[],
  maySkip = false,
): string[] {
  return files
    .filter(governs)
    .map((file) => ({ file, text: readFileSync(join(repository, file), 'utf8') }))
    .filter(({ text }) => !maySkip || maySay(text))
    .flatMap(({ file, text }) => textsOf(file, text).flatMap(findings));
}

describe('plain English in', () => {
  test('documents', () => {
    expect(findingsOf((file) => file.endsWith('.md'), textsOfMarkdown)).toEqual([]);
  });

  test('help', () => {
    expect(HELP_LINES.flatMap(findings)).toEqual([]);
    expect(HELP_LINES.filter(({ text }) => text.length > 72)).toEqual([]);
    expect(COMMAND_HELP.filter(({ text }) => text.length > 60 || text.includes(';'))).toEqual([]);
  });

  test('the error catalogue', () => {
    expect(ERROR_TEXTS.flatMap(findings)).toEqual([]);
  });

  test('messages and labels', () => {
    const hasLabels = (file: string) => /^(libs|services)\/.*src\/.*\.tsx?$/.test(file);
    const hasSentences = (file: string) => hasLabels(file) && !startsWithOneOf(file, CODE_IN_STRINGS);
    expect(findingsOf(hasSentences, textsOfStrings, true)).toEqual([]);
  });

  test('docstrings of the public packages', () => {
    const isPublic = (file: string) =>
      /^libs\/((client|testing|cli\/src\/embed)\/(src\/)?|protocol\/src\/([^/]+\/)?)[^/]+\.ts$/.test(file);
    expect(findingsOf(isPublic, textsOfDocstrings)).toEqual([]);
  });

  test('docstrings of turn, session, handlers and ports', () => {
    const isChecked = (file: string) => /^libs\/(turn|session|handlers|ports)\/src\/.*\.ts$/.test(file);
    expect(findingsOf(isChecked, textsOfDocstrings)).toEqual([]);
  });
});

describe('a finding is', () => {
  const long = Array.from({ length: 36 }, (_, index) => `word${index}`).join(' ');
  test.each(['Whoever asks.', 'This is no verb.', 'The model is\ntold why.', 'It is let in.', `${long}.`])(
    '%j',
    (text) => {
      expect(findings({ at: 'here', text })).toHaveLength(1);
    },
  );

  test.each(['There is no such session.', 'It is no longer open.', `${long.slice(0, 100)}. ${long.slice(0, 100)}.`])(
    'not %j',
    (text) => {
      expect(findings({ at: 'here', text })).toEqual([]);
    },
  );

  test('found in the prose of a page, not in its code', () => {
    const page = '# Title\n\n```sh\nnobody\n```\n\n- `beside` is\n  told\n\n| a | begun |\n|---|---|\n';
    expect(textsOfMarkdown('page.md', page).flatMap(findings)).toEqual(['page.md:7 "is told"', 'page.md:10 "begun"']);
  });

  test('found in strings, templates, text between tags and docstrings of exports', () => {
    const source = [
      "import x from 'nobody else';",
      "say('nobody came');",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
      'say(`${name} is no verb`);',
      'const page = <p>for ever\n young</p>;',
      '/** Whoever asks. */\nexport interface Asked {\n  /** One beside another. */\n  a: 1;\n}',
      '/** Nobody reads this. */\nfunction inner() {}',
    ].join('\n');
    expect(textsOfStrings('a.tsx', source).flatMap(findings)).toEqual([
      'a.tsx:2 "nobody"',
      'a.tsx:3 "is no verb"',
      'a.tsx:4 "for ever"',
    ]);
    expect(textsOfDocstrings('a.tsx', source).flatMap(findings)).toEqual(['a.tsx:6 "Whoever"', 'a.tsx:8 "beside"']);
  });
});
