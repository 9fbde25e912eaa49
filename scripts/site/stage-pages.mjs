/**
 * Copies the Markdown pages of the repository, and the files that they link to, to where VitePress builds the site from.
 * Adds generated files that git does not hold: JSON Schemas, and the coverage of a turn by tests.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const staged = fileURLToPath(new URL('dist/pages', import.meta.url));

/** Which Markdown files are pages. Others that a page links to are copied as text. */
const PAGES = [/^[A-Z_]+\.md$/, /^docs\/.*\.md$/, /^examples\/.*\.md$/, /^tests\/([\w-]+\/)?README\.md$/];
const isPage = (path) => PAGES.some((pattern) => pattern.test(path)) && existsSync(join(repository, path));

/** Where a file is in the site: `docs/guides/hooks.md` is `guides/hooks.md`; what is not in `docs` is below `repository`. */
const addressOf = (path) =>
  (path.startsWith('docs/') ? path.slice('docs/'.length) : `repository/${path}`).replace(/README\.md$/, 'index.md');

/** Files that are no pages and that pages link to: their paths, by their address in the site. */
const linked = new Map();

/** The link of a page, from where the page is in the site. A link to a missing file stays: the build reports it. */
function siteLink(page, href) {
  if (/^([a-z]+:|#|\/)/i.test(href)) return href;
  const [file, ...anchor] = href.split(/(?=#)/);
  const target = posix.join(posix.dirname(page), decodeURI(file)).replace(/\/$/, '');
  if (!existsSync(join(repository, target))) return href;
  const to = isPage(target) ? target : `${target}/README.md`;
  if (isPage(to)) return relativeTo(page, addressOf(to)) + anchor.join('');
  if (/\.(png|svg)$/.test(target)) {
    stage(addressOf(target), target);
    return relativeTo(page, addressOf(target));
  }
  const address = `source/${target}.txt`;
  linked.set(address, target);
  // VitePress leaves links to pages of its own origin alone where they open another tab.
  return `/${address}`;
}

function relativeTo(page, address) {
  const path = posix.relative(posix.dirname(addressOf(page)), address);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Rewrites the links of Markdown, not those in its code. */
const withSiteLinks = (page, text) =>
  text
    .split(/(^```[\s\S]*?^```$|`[^`\n]*`)/m)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replace(/\]\(([^()\s]+)\)/g, (_, href) => `](${siteLink(page, href)})`),
    )
    .join('');

/** The comment that generated pages begin with is for their editors. */
const withoutComment = (text) => text.replace(/^<!--.*-->\n+/, '');

function stage(address, path, text) {
  const to = join(staged, address);
  mkdirSync(dirname(to), { recursive: true });
  if (text === undefined) cpSync(join(repository, path), to);
  else writeFileSync(to, text);
}

/** Every Markdown file below a folder, packages and built files left out. */
function* markdownFiles(folder = '') {
  for (const entry of readdirSync(join(repository, folder), { withFileTypes: true })) {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!/^(node_modules|dist|docs-site|\..*)$/.test(entry.name)) yield* markdownFiles(path);
    } else if (entry.name.endsWith('.md')) yield path;
  }
}

rmSync(staged, { recursive: true, force: true });
for (const path of markdownFiles()) {
  if (!isPage(path)) continue;
  stage(addressOf(path), path, withSiteLinks(path, withoutComment(readFileSync(join(repository, path), 'utf8'))));
}
const built = fileURLToPath(new URL('dist/built', import.meta.url));
const generator = ['--conditions=coxswain-source', '--import', 'tsx', 'scripts/generate-docs.ts'];
execFileSync(process.execPath, [...generator, '--built', built, 'schemas', 'coverage'], { cwd: repository });
cpSync(join(built, 'schemas'), join(staged, 'public/reference/schemas'), { recursive: true });
stage('reference/coverage.md', '', withoutComment(readFileSync(join(built, 'coverage/coverage.md'), 'utf8')));
for (const [address, path] of linked) {
  const isFolder = statSync(join(repository, path)).isDirectory();
  const text = isFolder ? `${readdirSync(join(repository, path)).sort().join('\n')}\n` : undefined;
  stage(`public/${address}`, path, text);
}
