/** Every link between pages leads somewhere, down to the heading that it names. */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { linksOf } from './markdown.ts';
import { markdownFiles } from './pages.ts';

const files = markdownFiles();
const read = new Map(files.map(({ path, text }) => [path, linksOf(text)]));

/** What is wrong with a link, or null. */
function wrong(page: string, href: string): string | null {
  if (/^[a-z]+:/.test(href)) return null;
  const [file = '', anchor] = href.split('#');
  const target = file === '' ? page : posix.join(posix.dirname(page), decodeURI(file)).replace(/\/$/, '');
  if (!existsSync(join(REPOSITORY, target))) return `${page}: nothing is at ${href}`;
  if (anchor === undefined) return null;
  const { anchors } = read.get(target) ?? read.get(`${target}/README.md`) ?? {};
  return anchors?.has(anchor) ? null : `${page}: ${href} names no heading`;
}

test('a link to nothing, and one to a heading that is not there, are seen', () => {
  expect(wrong('README.md', 'docs/nowhere.md')).toBe('README.md: nothing is at docs/nowhere.md');
  expect(wrong('README.md', 'docs/tutorial.md#nowhere')).toBe('README.md: docs/tutorial.md#nowhere names no heading');
  expect(wrong('README.md', 'docs/tutorial.md#1-get-it')).toBeNull();
});

test('all links hold', () => {
  const links = [...read].flatMap(([page, { links }]) => links.map((href) => ({ page, href })));
  expect(links.length).toBeGreaterThan(200);
  expect(links.map(({ page, href }) => wrong(page, href)).filter((one) => one !== null)).toEqual([]);
});

test('every file that CONTRIBUTING.md names exists', () => {
  const text = files.find(({ path }) => path === 'CONTRIBUTING.md')?.text ?? '';
  const named = [...text.matchAll(/`((?:libs|services|tests|scripts|docs)\/[\w./-]+)`/g)].map(
    ([, path]) => path as string,
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
});

test('every decision is in the index, and has at most 500 words', () => {
  const index = read.get('docs/adr/README.md')?.links ?? [];
  const decisions = files.filter(({ path }) => /^docs\/adr\/(?!README)/.test(path));
  expect(decisions.length).toBeGreaterThan(20);
  expect(decisions.filter(({ path }) => !index.includes(posix.basename(path))).map(({ path }) => path)).toEqual([]);
  expect(decisions.filter(({ text }) => text.split(/\s+/).length > 501).map(({ path }) => path)).toEqual([]);
});

test('the sidebar of the site has every guide', () => {
  const topics: Record<string, string[]> = JSON.parse(
    readFileSync(join(REPOSITORY, 'scripts/site/guides.json'), 'utf8'),
  );
  const guides = files.flatMap(({ path }) => /^docs\/guides\/(.*)\.md$/.exec(path)?.[1] ?? []);
  expect(Object.values(topics).flat().sort()).toEqual(guides.sort());
});
