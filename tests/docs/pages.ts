/** The pages that people read: the README, the documentation, and the READMEs of the examples. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { type Fence, fencesOf } from './markdown.ts';

/** A page, by its path in the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced block, and where it stands. */
export interface Snippet extends Fence {
  readonly page: string;
  /** `docs/guides/cli.md:6` */
  readonly at: string;
}

/** All of them; `docs/reference` is written from the code, and held to it elsewhere. */
export function pages(): Page[] {
  return markdownFiles().filter(({ path }) => /^(README\.md$|docs\/(?!reference\/)|examples\/)/.test(path));
}

/** Every page of Markdown in the repository. */
export function markdownFiles(): Page[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', '*.md'], {
    cwd: REPOSITORY,
    encoding: 'utf8',
  });
  return listed
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(REPOSITORY, path)))
    .map((path) => ({ path, text: readFileSync(join(REPOSITORY, path), 'utf8') }));
}

/** Their fenced blocks of these languages. */
export function snippets(...languages: readonly string[]): Snippet[] {
  return pages().flatMap(({ path, text }) =>
    fencesOf(text)
      .filter(({ language }) => languages.includes(language))
      .map((fence) => ({ ...fence, page: path, at: `${path}:${fence.line}` })),
  );
}
