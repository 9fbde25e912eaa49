/**
 * Publishes packages with provenance: `node --import tsx scripts/release/publish-missing.ts FOLDER-OR-ARCHIVE …`.
 * Dependencies come first. A version that the registry already has is skipped, so that a failed release can run again.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The members of a package.json that this script reads. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Sorts packages so that each one comes after its dependencies in the list.
 * @throws Error if packages depend on each other in a cycle.
 */
export function inOrder<Package extends { readonly manifest: Manifest }>(packages: readonly Package[]): Package[] {
  const left = new Map(packages.map((one) => [one.manifest.name, one]));
  const ordered: Package[] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter(({ manifest: { dependencies, optionalDependencies } }) =>
      Object.keys({ ...dependencies, ...optionalDependencies }).every((name) => !left.has(name)),
    );
    if (free.length === 0) throw new Error(`${[...left.keys()].join(', ')} depend on each other`);
    for (const one of free) left.delete(one.manifest.name);
    ordered.push(...free);
  }
  return ordered;
}

/** The package.json of a folder or of an npm archive. */
function manifestIn(path: string): Manifest {
  const text = statSync(path).isDirectory()
    ? readFileSync(join(path, 'package.json'), 'utf8')
    : execFileSync('tar', ['-xzOf', path, 'package/package.json'], { encoding: 'utf8' });
  return JSON.parse(text) as Manifest;
}

/**
 * Whether the registry has a version.
 * @throws Error if the registry gives neither answer, for example after a network error.
 */
function isPublished({ name, version }: Manifest): boolean {
  try {
    execFileSync('npm', ['view', `${name}@${version}`, 'version', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
    return true;
  } catch (error) {
    const { stdout } = error as { readonly stdout?: Buffer };
    if (/"code": "E404"/.test(String(stdout))) return false;
    throw error;
  }
}

/**
 * The arguments of `npm publish` for a folder or an archive. npm rejects a pre-release without a tag. Its tag is
 * `next`, so that `latest` stays a release.
 */
export function publishArguments(path: string, version: string): string[] {
  const tag = version.includes('-') ? ['--tag', 'next'] : [];
  return ['publish', path, '--provenance', '--access', 'public', ...tag];
}

if (process.argv[1] === import.meta.filename) {
  const packages = process.argv.slice(2).map((path) => ({ path, manifest: manifestIn(path) }));
  for (const { path, manifest } of inOrder(packages)) {
    if (isPublished(manifest)) console.log(`${manifest.name}@${manifest.version} is published already`);
    else execFileSync('npm', publishArguments(path, manifest.version), { stdio: 'inherit' });
  }
}
