/** The site of the documentation: built, every link followed, nothing asked of another machine, and read in a browser. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { drawDiagrams } from '../../scripts/site/draw-diagram.ts';
import { fencesOf, readMarkdown } from '../../scripts/site/markdown-page.ts';
import { buildSite } from '../../scripts/site/static-site.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { BROWSER } from '../e2e/kit/headless-page.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { pages } from './pages.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let site: string;
/** Its files, by their paths. */
const files = new Map<string, string>();
let broken: readonly unknown[];
let undrawn: readonly unknown[];

beforeAll(async () => {
  site = join(await scratchFolder('site'), 'built');
  ({ broken, undrawn } = await buildSite(REPOSITORY, site));
  for (const entry of readdirSync(site, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(posix.relative(site, path), readFileSync(path, 'utf8'));
  }
});
afterAll(removeScratch);

const html = () => [...files].filter(([path]) => path.endsWith('.html'));

test('has every page of the documentation, and links to nothing that is not there', () => {
  expect(broken).toEqual([]);
  const shown = html().map(([, text]) => /<p class="source">(.*)<\/p>/.exec(text)?.[1]);
  for (const { path } of pages().filter(({ path }) => path.startsWith('docs/'))) expect(shown).toContain(path);
});

test('every address in it is relative, and leads to a file and a place in it', () => {
  const wrong: string[] = [];
  for (const [path, text] of html()) {
    for (const [, address = ''] of text.matchAll(/(?:href|src)="([^"]*)"/g)) {
      if (/^(https?|mailto|data):/.test(address)) continue;
      const [file = '', anchor] = address.split('#');
      const target = file === '' ? path : posix.join(dirname(path), file);
      const there = files.get(target);
      if (address.startsWith('/') || there === undefined) wrong.push(`${path}: ${address}`);
      else if (anchor && !there.includes(` id="${anchor}"`)) wrong.push(`${path}: ${address} names no place`);
    }
  }
  expect(wrong).toEqual([]);
});

test('its diagrams are drawn: a box for each state, an arrow for each way, and the text beside them', () => {
  expect(undrawn).toEqual([]);
  const [overview = ''] = /<figure>[\s\S]*?<\/figure>/.exec(files.get('reference/states.html') ?? '') ?? [];
  const source = fencesOf(readFileSync(join(REPOSITORY, 'docs/reference/states.md'), 'utf8'))[0]?.text ?? '';
  const ways = [...source.matchAll(/^ *(\S+) --> (\w+)/gm)].map(([, from, to]) => `${from} ${to}`);
  const states = new Set(ways.flatMap((way) => way.split(' ')).filter((state) => state !== '[*]'));
  expect(states.size).toBeGreaterThan(10);
  expect(overview.match(/<rect class="state"/g)).toHaveLength(states.size);
  expect(overview.match(/<path class="way"/g)).toHaveLength(new Set(ways).size);
  for (const state of states)
    expect(overview.slice(0, overview.indexOf('</svg>'))).toContain(
      `>${state === 'anywhere' ? 'from anywhere' : state}<`,
    );
  expect(overview).toContain('stateDiagram-v2');
});

test('its pictures are in it, each with words for who does not see it', () => {
  const shown = html().flatMap(([path, text]) =>
    [...text.matchAll(/<img src="([^"]*)" alt="([^"]*)">/g)].map(([, src = '', alt]) => ({
      there: files.has(posix.join(dirname(path), src)),
      alt,
    })),
  );
  expect(shown.length).toBeGreaterThan(2);
  for (const { there, alt } of shown)
    expect({ there, alt }).toEqual({ there: true, alt: expect.stringMatching(/\w{3}/) });
});

test.each([
  ['flowchart LR', 'flowchart LR'],
  ['stateDiagram-v2\n  a --> b\n  note right of a : no', 'note right of a : no'],
  ['stateDiagram-v2\n  state a {\n    b --> c', 'state a { without its }'],
])('a diagram that cannot be drawn is shown as code, and the build says of which line: %s', async (source, line) => {
  const text = `# Page\n\n\`\`\`mermaid\n${source}\n\`\`\`\n`;
  const { drawn, unread } = await drawDiagrams(text);
  expect(unread).toEqual([line]);
  expect(readMarkdown(text, (href) => href, drawn).html).toMatch(/<pre><code>/);
});

test('nothing is loaded from elsewhere', () => {
  for (const [path, text] of html())
    for (const [tag] of text.matchAll(/<(?!a )[a-z]+[^>]*(?:href|src|action)="[^"]*"[^>]*>/g))
      expect(`${path}: ${tag}`).not.toMatch(/="(https?:)?\/\//);
  for (const [path, text] of files) if (path.endsWith('.css')) expect(text).not.toMatch(/url\(|@import/);
  expect(files.get('assets/site.js')).not.toMatch(/https?:|fetch\(/);
});

test('a folder that has something else in it is left alone', async () => {
  await expect(buildSite(REPOSITORY, REPOSITORY)).rejects.toThrow('something else in it than the site');
});

describe.skipIf(BROWSER === null)('in a browser, from files', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: BROWSER as string,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
    });
  });
  afterAll(() => browser?.close());

  /** Opens a page of the site. @returns it, with whatever it asked for that is not a file, and what it threw. */
  async function open(address: string, width: number) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    const trouble: string[] = [];
    page.on('request', (request) => {
      if (!/^(file|data):/.test(request.url())) trouble.push(request.url());
    });
    page.on('pageerror', (error) => trouble.push(error.message));
    await page.goto(pathToFileURL(join(site, address)).href);
    return { page, trouble };
  }

  test('what is looked for is found, from a page in a folder', async () => {
    const { page, trouble } = await open('guides/hooks.html', 1280);
    await page.keyboard.press('/');
    await page.keyboard.type('ownership fence');
    await page.waitForSelector('#found a');
    await page.click('#found a:has-text("Ownership and fences")');
    await page.waitForURL(/concepts\/ownership-and-fences\.html/);
    await page.fill('#search', 'nothing-is-called-like-this');
    await page.waitForSelector('#found li:has-text("Nothing found")');
    expect(trouble).toEqual([]);
  });

  test('dark and light can be chosen', async () => {
    const { page, trouble } = await open('index.html', 1280);
    const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const before = await ground();
    await page.click('.theme');
    expect(await ground()).not.toBe(before);
    expect(trouble).toEqual([]);
  });

  test('no page is wider than a phone, and its menu opens', async () => {
    for (const address of ['index.html', 'tutorial.html', 'faq.html', 'guides/cli.html', 'reference/errors.html']) {
      const { page } = await open(address, 390);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), address).toBeLessThanOrEqual(0);
      await page.click('.menu');
      await page.waitForSelector('nav a:has-text("Tutorial")', { state: 'visible' });
      await page.close();
    }
  });
});
