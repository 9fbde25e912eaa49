/** Links to tests: a file and the title of a test in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../e2e/kit/child.ts';

/** A test that owns a statement. */
export interface LinkedTest {
  /** From the root of the repository. */
  readonly file: string;
  /** As it stands in the source, with its placeholders. */
  readonly title: string;
}

/** Why a link is broken; null if the file has a test or a group of tests with this title. */
export function linkProblem({ file, title }: LinkedTest): string | null {
  const titles = titlesIn(file);
  if (titles === null) return `${file}: there is no such file`;
  return titles.has(title) ? null : `${file}: there is no test "${title}"`;
}

const known = new Map<string, ReadonlySet<string> | null>();

function titlesIn(file: string): ReadonlySet<string> | null {
  const found = known.get(file) ?? readTitles(file);
  known.set(file, found);
  return found;
}

/** The first argument of each `test(`, `describe(` and of the call behind `.each(…)`. */
function readTitles(file: string): ReadonlySet<string> | null {
  let text: string;
  try {
    text = readFileSync(join(REPOSITORY, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const calls = text.matchAll(
    /(?:\b(?:test|it|describe)(?:\.\w+)*|\))\(\s*(['"`])((?:\\.|(?!\1).)+)\1\s*,\s*(?:\{[^}]*\},\s*)?(?:async\b|\(|function\b|[A-Za-z_]+\))/gs,
  );
  return new Set([...calls].map(([, quote, title = '']) => title.replaceAll(`\\${quote}`, quote ?? '')));
}
