/**
 * `npm run version-packages` applies the pending changesets. It sets the next version in all files that contain it, and
 * moves the texts of the changesets into CHANGELOG.md. Changesets computes the version. This script writes both,
 * because the repository has one version and one changelog.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const repository = resolve(import.meta.dirname, '..');

/** Files with the version, other than package files: the text around the version, with `%` for the version. */
export const VERSIONED_FILES: Readonly<Record<string, string>> = {
  'libs/protocol/src/wire/version.ts': "VERSION = '%'",
  Dockerfile: 'ARG VERSION=%\n',
  'docker-bake.hcl': 'default = "%"',
  'docker-compose.yml': 'coxswain:%}',
  'docs/operations/deploy-with-compose.md': 'coxswain:%',
};

/**
 * Replaces the version in a text.
 * @param around text around the version, with `%` for the version.
 * @param version the present version.
 * @throws Error if the text does not contain the present version in this form.
 */
export function withVersion(text: string, around: string, version: string, next: string): string {
  const at = (name: string) => around.replace('%', name);
  if (!text.includes(at(version))) throw new Error(`no ${JSON.stringify(at(version))} in the text`);
  return text.replaceAll(at(version), at(next));
}

/** The headings of a section, in order (https://keepachangelog.com/en/1.1.0/). */
const HEADINGS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];

/**
 * The changelog section of a version.
 * @param date date of the release, such as `2026-12-31`.
 * @param summaries texts of changesets, each `Heading: one sentence`.
 * @throws Error with the start of the first text that has no known heading.
 */
export function changelogSection(version: string, date: string, summaries: readonly string[]): string {
  const lines = new Map<string, string[]>();
  for (const summary of summaries) {
    const [, heading = '', text = ''] = /^(\w+):\s+([\s\S]+)$/.exec(summary.trim()) ?? [];
    if (!HEADINGS.includes(heading))
      throw new Error(
        `a changeset starts with ${HEADINGS.map((one) => `${one}:`).join(' or ')} and not with ${JSON.stringify(summary.slice(0, 40))}`,
      );
    lines.set(heading, [...(lines.get(heading) ?? []), `- ${text.replaceAll(/\s*\n\s*/g, ' ')}`]);
  }
  const parts = HEADINGS.filter((heading) => lines.has(heading)).map((heading) =>
    [`### ${heading}`, '', ...(lines.get(heading) ?? [])].join('\n'),
  );
  return [`## [${version}] - ${date}`, ...parts].join('\n\n');
}

/**
 * Inserts a section before the newest one in a changelog.
 * @throws Error if the changelog has no section.
 */
export function withSection(changelog: string, section: string): string {
  const newest = changelog.indexOf('\n## ');
  if (newest < 0) throw new Error('the changelog has no section of a version');
  return `${changelog.slice(0, newest + 1)}${section}\n\n${changelog.slice(newest + 1)}`;
}

interface Plan {
  readonly changesets: readonly { readonly summary: string }[];
  readonly releases: readonly { readonly oldVersion: string; readonly newVersion: string }[];
}

function main(): void {
  const changeset = (...args: string[]) =>
    execFileSync(process.execPath, ['scripts/changesets/node_modules/@changesets/cli/bin.js', ...args], {
      cwd: repository,
      stdio: 'inherit',
    });
  const scratch = mkdtempSync(join(tmpdir(), 'cox-version-'));
  try {
    const file = join(scratch, 'plan.json');
    changeset('status', '--output', file);
    const { changesets, releases } = JSON.parse(readFileSync(file, 'utf8')) as Plan;
    const [release] = releases;
    if (release === undefined) throw new Error('no changeset is pending: npm run changeset writes one');
    const { oldVersion: version, newVersion: next } = release;
    const section = changelogSection(
      next,
      new Date().toISOString().slice(0, 10),
      changesets.map(({ summary }) => summary),
    );
    changeset('version');
    const rewrite = (path: string, change: (text: string) => string) => {
      const at = join(repository, path);
      writeFileSync(at, change(readFileSync(at, 'utf8')));
    };
    for (const [path, around] of Object.entries(VERSIONED_FILES))
      rewrite(path, (text) => withVersion(text, around, version, next));
    // The root, the packages of scripts and the benchmark's peers are outside the workspaces.
    const outside = ['scripts', 'tests/bench/peers']
      .flatMap((parent) => readdirSync(join(repository, parent)).map((name) => `${parent}/${name}`))
      .filter((folder) => existsSync(join(repository, folder, 'package.json')));
    for (const folder of ['.', ...outside]) {
      rewrite(join(folder, 'package.json'), (text) => withVersion(text, '"version": "%"', version, next));
      execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], {
        cwd: join(repository, folder),
        stdio: 'inherit',
      });
    }
    rewrite('CHANGELOG.md', (text) => withSection(text, section));
    console.log(`set version ${next}; now: npm run docs, npm run trace:release, then commit`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  try {
    main();
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
