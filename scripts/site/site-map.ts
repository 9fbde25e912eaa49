/** What the site has: which pages stand in its navigation, and where in it a file of the repository is found. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, posix } from 'node:path';

/** A part of the navigation. */
export interface NavigationGroup {
  readonly title: string;
  /** Paths in the repository, in order. */
  readonly pages: readonly string[];
  /** Folded away unless one of its pages is shown. */
  readonly folded?: true;
}

/** The navigation of a repository: pages that are added to a folder appear by themselves. */
export function navigationOf(repository: string): NavigationGroup[] {
  const first = (folder: string, order: readonly string[]) => {
    const there = markdownIn(repository, folder);
    const wanted = order.map((name) => `${folder}/${name}.md`).filter((path) => there.includes(path));
    return [...wanted, ...there.filter((path) => !wanted.includes(path))];
  };
  const groups: NavigationGroup[] = [
    {
      title: 'Begin',
      pages: ['docs/README.md', ...TUTORIALS.map((name) => `docs/${name}.md`), 'docs/faq.md', 'docs/comparison.md'],
    },
    { title: 'Concepts', pages: first('docs/concepts', CONCEPTS_IN_ORDER) },
    { title: 'Guides', pages: first('docs/guides', GUIDES_FIRST).filter((page) => !OPERATOR_GUIDES.includes(page)) },
    { title: 'Operations', pages: [...first('docs/operations', OPERATIONS_IN_ORDER), ...OPERATOR_GUIDES] },
    {
      title: 'Reference',
      pages: ['docs/architecture.md', ...first('docs/reference', []), ...first('docs/reports', [])],
    },
    { title: 'Decisions', pages: first('docs/adr', ['README']), folded: true },
    {
      title: 'Repository',
      pages: ['README.md', 'examples/README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'SUPPORT.md', 'CHANGELOG.md'],
    },
  ];
  return groups.map((group) => ({
    ...group,
    pages: group.pages.filter((path) => existsSync(join(repository, path))),
  }));
}

/** In the order in which a reader follows them. */
const TUTORIALS = [
  'tutorial',
  'tutorials/crash-and-replay',
  'tutorials/typescript',
  'tutorials/web-app',
  'tutorials/cluster',
];

/** They build on each other. */
const CONCEPTS_IN_ORDER = [
  'README',
  'glossary',
  'sessions-and-turns',
  'steering-and-seams',
  'journal-and-replay',
  'ownership-and-fences',
  'failure-semantics',
  'personas-tools-hooks-crews',
  'tenants-and-keys',
];

/** What people look for first; the others follow by name. */
const GUIDES_FIRST = [
  'steering',
  'approvals',
  'personas',
  'tools',
  'built-in-tools',
  'mcp-tools',
  'own-tools',
  'bus-tools',
  'long-running-tools',
  'hooks',
  'crews',
  'models',
  'cli',
  'client',
];

/** In the order of the life of a deployment. */
const OPERATIONS_IN_ORDER = [
  'README',
  'deploy-with-compose',
  'deploy-without-docker',
  'configure-services',
  'manage-keys',
  'scale',
  'upgrade',
  'back-up-and-restore',
  'delete-sessions',
  'set-quotas',
];

/** Guides for the person who runs a host: the navigation lists them under operations. */
const OPERATOR_GUIDES = [
  'security',
  'policy',
  'sandbox',
  'trust-a-folder',
  'threat-model',
  'embedded-server',
  'observability',
  'traces',
  'troubleshooting',
].map((name) => `docs/guides/${name}.md`);

function markdownIn(repository: string, folder: string): string[] {
  if (!existsSync(join(repository, folder))) return [];
  return readdirSync(join(repository, folder))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `${folder}/${name}`);
}

/** What is at a path of the repository. */
export type Kind = 'page' | 'picture' | 'source' | 'folder' | 'folder with a page';

const KIND_BY_ENDING: ReadonlyMap<string, Kind> = new Map([
  ['.md', 'page'],
  ['.png', 'picture'],
  ['.svg', 'picture'],
]);

/** @returns null where nothing is there. */
export function kindOf(repository: string, path: string): Kind | null {
  const full = join(repository, path);
  if (!existsSync(full)) return null;
  if (!statSync(full).isDirectory()) return KIND_BY_ENDING.get(extname(path)) ?? 'source';
  return existsSync(join(full, 'README.md')) ? 'folder with a page' : 'folder';
}

/** Where a file or folder of the repository is in the site. */
export function addressOf(path: string, kind: Kind): string {
  const inSite = path.startsWith('docs/') ? path.slice('docs/'.length) : posix.join('repository', path);
  if (kind === 'picture') return inSite;
  if (kind === 'source') return `${inSite}.html`;
  if (kind !== 'page') return posix.join(inSite, 'index.html');
  return inSite.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html');
}

/** What a page is called in the navigation: the first heading, without what comes behind a colon. */
export function shortTitle(repository: string, path: string): string {
  const [, heading = path] = /^# (.*)$/m.exec(readFileSync(join(repository, path), 'utf8')) ?? [];
  return heading.replaceAll('`', '').replace(/: .*$/, '');
}
