/** One page of the site: navigation, search, the page, and what is on it. */
import { posix } from 'node:path';
import { escaped, type Heading } from './markdown-page.ts';

/** What a page has. */
export interface PageParts {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  /** Its place in the site. */
  readonly address: string;
  /** Its source, in the repository. */
  readonly path: string;
  readonly groups: readonly {
    readonly title: string;
    readonly folded?: true;
    readonly pages: readonly { readonly title: string; readonly address: string }[];
  }[];
}

/** Writes it. All addresses are relative: it works below any path, and as a file. */
export function pageHtml(page: PageParts): string {
  const to = (address: string) => posix.relative(posix.dirname(page.address), address) || posix.basename(address);
  const root = posix.relative(posix.dirname(page.address), '') || '.';
  const onPage = page.headings.filter(({ depth }) => depth === 2 || depth === 3);
  const all = page.groups.flatMap(({ pages }) => pages);
  const at = all.findIndex(({ address }) => address === page.address);
  const [before, after] = at < 0 ? [] : [all[at - 1], all[at + 1]];
  return `<!doctype html>
<html lang="en" data-root="${root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escaped(page.title)} · Coxswain</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('assets/site.css')}">
<link rel="stylesheet" href="${to('assets/article.css')}">
<script src="${to('assets/site.js')}" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the page</a>
<header>
<button type="button" class="menu" aria-expanded="false" aria-controls="navigation">Menu</button>
<a class="name" href="${to('index.html')}">Coxswain</a>
<div class="search"><input type="search" id="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" spellcheck="false" aria-controls="found"><ol id="found" hidden></ol></div>
<button type="button" class="theme" aria-label="Dark or light">◐</button>
</header>
<nav id="navigation" aria-label="Pages">
${page.groups.map((group) => groupHtml(group, page.address, to)).join('\n')}
</nav>
<main id="content">
<article>
${page.html}</article>
<footer>
<p class="ways">${before ? `<a rel="prev" href="${to(before.address)}">← ${escaped(before.title)}</a>` : '<span></span>'}${after ? `<a rel="next" href="${to(after.address)}">${escaped(after.title)} →</a>` : ''}</p>
<p class="source">${escaped(page.path)}</p>
</footer>
</main>
${onPage.length > 1 ? outlineHtml(onPage) : ''}
</body>
</html>
`;
}

function groupHtml(group: PageParts['groups'][number], shown: string, to: (address: string) => string): string {
  const items = group.pages.map(({ title, address }) => {
    const current = address === shown ? ' aria-current="page"' : '';
    return `<li><a href="${to(address)}"${current}>${escaped(title)}</a></li>`;
  });
  const open = !group.folded || group.pages.some(({ address }) => address === shown) ? ' open' : '';
  return `<details${open}><summary>${escaped(group.title)}</summary><ul>\n${items.join('\n')}\n</ul></details>`;
}

function outlineHtml(headings: readonly Heading[]): string {
  const items = headings.map(
    ({ depth, slug, text }) => `<li class="depth-${depth}"><a href="#${slug}">${escaped(text)}</a></li>`,
  );
  return `<aside aria-label="On this page"><p>On this page</p><ul>\n${items.join('\n')}\n</ul></aside>`;
}
