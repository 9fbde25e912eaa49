// The documentation site, built from the pages that stage-pages.mjs has copied. Its search works without a network.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { slug } from 'github-slugger';
import { defineConfig } from 'vitepress';
import llmsFiles from 'vitepress-plugin-llms';

const pages = fileURLToPath(new URL('../dist/pages', import.meta.url));

/** Draws Mermaid diagrams at build time, so that readers load no renderer. */
function withDiagrams(md) {
  const renderFence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info.trim() !== 'mermaid') return renderFence(tokens, index, ...rest);
    const svg = renderMermaidSVG(content, { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true });
    // Removes the font, which browsers would load from another host.
    const drawn = svg
      .replace(/@import url\([^)]*\);/, '')
      .replace('style="', 'style="max-width: 1100px; height: auto; ');
    return `<div v-pre style="overflow-x: auto">${drawn}</div>\n`;
  };
}

/** Opens links to copied source files in a new tab: VitePress does not serve them as pages. */
function withSourceLinks(md) {
  const renderLink = md.renderer.rules.link_open;
  md.renderer.rules.link_open = (tokens, index, ...rest) => {
    if (tokens[index].attrGet('href')?.startsWith('/source/')) tokens[index].attrSet('target', '_blank');
    return renderLink(tokens, index, ...rest);
  };
}

/** Excludes inline code from Vue's template syntax, which also uses double braces. */
function withPlainCode(md) {
  const renderCode = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    tokens[index].attrSet('v-pre', '');
    return renderCode(tokens, index, ...rest);
  };
}

/** An entry of the sidebar, titled with the page's first heading. */
function entry(path) {
  const heading = /^# (.*)$/m.exec(readFileSync(join(pages, path), 'utf8'))?.[1] ?? path;
  return { text: heading.replaceAll('`', ''), link: `/${path.replace(/(index)?\.md$/, '')}` };
}

/** The pages of a folder: first the given ones, then the others by name. */
function entries(folder, first = []) {
  if (!existsSync(join(pages, folder))) return [];
  const names = readdirSync(join(pages, folder)).filter((name) => name.endsWith('.md'));
  const others = names.filter((name) => !first.includes(name)).sort();
  return [...first.filter((name) => names.includes(name)), ...others].map((name) => entry(posix.join(folder, name)));
}

/**
 * File names of guides, by topic. The build fails if a guide is missing from this list, or a listed guide does not
 * exist.
 */
const GUIDES = JSON.parse(readFileSync(new URL('../guides.json', import.meta.url), 'utf8'));

/** Pages about operations, in the order in which operators need them. The other pages follow by name. */
const OPERATIONS_FIRST = [
  'index',
  'deploy-with-compose',
  'deploy-without-docker',
  'configure-services',
  'manage-keys',
  'scale',
  'upgrade',
  'back-up-and-restore',
  'delete-sessions',
  'set-quotas',
].map((name) => `${name}.md`);

function guides() {
  const grouped = Object.values(GUIDES).flat();
  const files = readdirSync(join(pages, 'guides')).map((name) => name.replace(/\.md$/, ''));
  const wrong = [
    ...files.filter((name) => !grouped.includes(name)),
    ...grouped.filter((name) => !files.includes(name)),
  ];
  if (wrong.length > 0)
    throw new Error(`scripts/site/guides.json and the folder docs/guides differ: ${wrong.join(', ')}`);
  return Object.entries(GUIDES).map(([text, names]) => ({
    text,
    items: names.map((name) => entry(`guides/${name}.md`)),
    collapsed: true,
  }));
}

export default defineConfig({
  srcDir: 'dist/pages',
  outDir: '../../docs-site',
  base: process.env.COX_SITE_BASE ?? '/',
  title: 'Coxswain',
  description: 'A durable runtime for AI agents that you can steer while they work',
  lang: 'en',
  metaChunk: true,
  // Links to localhost are examples, or belong to a server that the reader starts.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    html: false,
    anchor: { slugify: slug },
    config: (md) => md.use(withDiagrams).use(withSourceLinks).use(withPlainCode),
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'Guides', link: '/' },
      { text: 'Troubleshooting', link: '/guides/troubleshooting' },
      { text: 'Errors', link: '/reference/errors' },
    ],
    sidebar: [
      { text: 'Start', items: entries('.', ['index.md', 'tutorial.md', 'faq.md', 'comparison.md']) },
      { text: 'Tutorials', items: entries('tutorials') },
      { text: 'Concepts', items: entries('concepts', ['index.md']) },
      ...guides(),
      { text: 'Operations', items: entries('operations', OPERATIONS_FIRST) },
      { text: 'Reference', items: entries('reference'), collapsed: true },
      { text: 'Reports', items: entries('reports'), collapsed: true },
      { text: 'Walks', items: entries('walks', ['index.md']), collapsed: true },
      { text: 'Decisions', items: entries('adr', ['index.md']), collapsed: true },
      { text: 'Repository', items: [...entries('repository'), entry('repository/examples/index.md')], collapsed: true },
    ].filter(({ items }) => items.length > 0),
  },
  vite: { plugins: [llmsFiles()] },
});
