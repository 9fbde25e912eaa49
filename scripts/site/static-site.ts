/** Makes every page of the site, and what pages link to in the repository: linked source is shown, not left out. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname, extname, join, posix } from 'node:path';
import { drawDiagrams } from './draw-diagram.ts';
import { codeBlock, escaped, type Heading, readMarkdown, type Section } from './markdown-page.ts';
import { pageHtml } from './page-template.ts';
import { addressOf, type Kind, kindOf, navigationOf, shortTitle } from './site-map.ts';

/** What was built. */
export interface BuiltSite {
  readonly pages: number;
  /** Links to what is not there. */
  readonly broken: readonly { readonly page: string; readonly href: string }[];
  /** Diagrams that are shown as code, with the line that could not be drawn. */
  readonly undrawn: readonly { readonly page: string; readonly line: string }[];
}

interface SearchEntry extends Section {
  readonly page: string;
  readonly address: string;
  /** What counts less than guides do: decisions, and what has changed. */
  readonly aside?: true;
}

/**
 * Builds it. What was in the folder before is removed.
 * @throws where a folder is given that is not a site: it would be removed.
 */
export async function buildSite(repository: string, folder: string): Promise<BuiltSite> {
  removeSite(folder);
  const groups = navigationOf(repository).map((group) => ({
    ...group,
    pages: group.pages.map((path) => ({ title: shortTitle(repository, path), address: addressOf(path, 'page') })),
  }));
  const search: SearchEntry[] = [];
  const broken: { page: string; href: string }[] = [];
  const undrawn: { page: string; line: string }[] = [];
  const waiting = navigationOf(repository).flatMap(({ pages }) => pages);
  const inNavigation = new Set(waiting);
  const made = new Set(waiting);

  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const current = path;
    const kind = kindOf(repository, current) as Kind;
    const address = addressOf(current, kind);
    if (kind === 'picture') {
      await cp(join(repository, current), join(folder, address));
      continue;
    }
    const link = (href: string): string => {
      if (/^[a-z]+:|^#/.test(href)) return href;
      const [file = '', anchor] = href.split('#');
      const base = kind === 'folder' ? current : posix.dirname(current);
      const target = posix.join(base, decodeURI(file)).replace(/\/$/, '');
      const there = kindOf(repository, target);
      if (there === null || target.startsWith('..')) {
        broken.push({ page: current, href });
        return href;
      }
      const page = there === 'folder with a page' ? `${target}/README.md` : target;
      if (!made.has(page)) {
        made.add(page);
        waiting.push(page);
      }
      const to = addressOf(page, kindOf(repository, page) as Kind);
      return posix.relative(posix.dirname(address), to) + (anchor === undefined ? '' : `#${anchor}`);
    };
    const content = await contentOf(repository, current, kind, link);
    for (const line of content.undrawn) undrawn.push({ page: current, line });
    for (const section of inNavigation.has(current) ? content.sections : [])
      search.push({
        ...section,
        page: content.title,
        address,
        ...(/^docs\/adr|CHANGELOG/.test(current) ? { aside: true } : {}),
      });
    write(folder, address, pageHtml({ ...content, address, groups, path: current }));
  }
  await cp(join(import.meta.dirname, 'assets'), join(folder, 'assets'), { recursive: true });
  // A script and not JSON: pages that are opened as files may load scripts, and nothing else.
  write(folder, 'assets/search-index.js', `window.searchIndex = ${JSON.stringify(search)};\n`);
  return { pages: made.size, broken, undrawn };
}

interface Content {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly Section[];
  readonly undrawn: readonly string[];
}

async function contentOf(
  repository: string,
  path: string,
  kind: Kind,
  link: (href: string) => string,
): Promise<Content> {
  const full = join(repository, path);
  if (kind === 'page') {
    const text = readFileSync(full, 'utf8');
    const { drawn, unread } = await drawDiagrams(text);
    return { ...readMarkdown(text, link, drawn), undrawn: unread };
  }
  if (kind === 'source') {
    const html = `<h1><code>${escaped(path)}</code></h1>\n${codeBlock(readFileSync(full, 'utf8'), extname(path).slice(1))}`;
    return { title: path, html, headings: [], sections: [], undrawn: [] };
  }
  const names = readdirSync(full, { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist'].includes(name))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
  const items = names.map((name) => `<li><a href="${escaped(link(name))}"><code>${escaped(name)}</code></a></li>`);
  const html = `<h1><code>${escaped(path)}</code></h1>\n<ul>${items.join('\n')}</ul>\n`;
  return { title: path, html, headings: [], sections: [], undrawn: [] };
}

function write(folder: string, path: string, text: string): void {
  const full = join(folder, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
}

function removeSite(folder: string): void {
  let there: string[] = [];
  try {
    there = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (there.length > 0 && !there.includes('assets'))
    throw new Error(`${folder} has something else in it than the site: name another folder, or empty it`);
  rmSync(folder, { recursive: true, force: true });
}
