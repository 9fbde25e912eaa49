/**
 * Copies the Markdown pages of the repository, and the files that they link to, into the source folder of VitePress.
 * Adds generated files that are not in git: JSON Schemas, and the coverage of a turn by tests.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const staged = fileURLToPath(new URL('dist/pages', import.meta.url));

/** Patterns of the Markdown files that are pages. Other linked files are copied as text. */
const PAGES = [/^[A-Z_]+\.md$/, /^docs\/.*\.md$/, /^examples\/.*\.md$/, /^tests\/([\w-]+\/)?README\.md$/];
const isPage = (path) => PAGES.some((pattern) => pattern.test(path)) && existsSync(join(repository, path));

/**
 * The path of a file in the site: `docs/guides/hooks.md` becomes `guides/hooks.md`. A file outside `docs` is in
 * `repository`.
 */
const addressOf = (path) =>
  (path.startsWith('docs/') ? path.slice('docs/'.length) : `repository/${path}`).replace(/README\.md$/, 'index.md');

/** Linked files that are not pages: their paths, by their address in the site. */
const linked = new Map();

/**
 * Converts a link of a page to a link in the site. A link to a missing file stays unchanged, so that the build reports
 * it.
 */
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
  // VitePress does not handle same-origin links that open in a new tab.
  return `/${address}`;
}

function relativeTo(page, address) {
  const path = posix.relative(posix.dirname(addressOf(page)), address);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Converts the links of a Markdown text, except in code. */
const withSiteLinks = (page, text) =>
  text
    .split(/(^```[\s\S]*?^```$|`[^`\n]*`)/m)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replace(/\]\(([^()\s]+)\)/g, (_, href) => `](${siteLink(page, href)})`),
    )
    .join('');

/** Removes the first comment of a generated page. It addresses editors of the page. */
const withoutComment = (text) => text.replace(/^<!--.*-->\n+/, '');

function stage(address, path, text) {
  const to = join(staged, address);
  mkdirSync(dirname(to), { recursive: true });
  if (text === undefined) cpSync(join(repository, path), to);
  else writeFileSync(to, text);
}

/** All Markdown files in a folder, without packages and built files. */
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
