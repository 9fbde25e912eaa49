import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readAptSources } from './apt-sources.ts';

/** A suite of the distribution's archive that is newer than the machine's, to search for a package. */
export interface NewerSuite {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
  /** Path of a keyring, or an armoured key. Without it, apt uses the machine's trusted keys. */
  readonly signedBy?: string | undefined;
}

/** Maximum number of mirrors: each costs an index of about 10 MB, and all have the same content. */
const maxMirrors = 2;

interface Distribution {
  /** Suites to search, in order. */
  readonly newer: readonly string[];
  readonly components: readonly string[];
  /** Suite names, in addition to the codename, under which the machine's sources may list the archive. */
  readonly aliases: readonly string[];
  readonly keyring: string;
}

const debian: Distribution = {
  newer: ['testing', 'unstable'],
  components: ['main'],
  aliases: ['oldstable', 'stable', 'testing', 'unstable', 'sid'],
  keyring: 'usr/share/keyrings/debian-archive-keyring.gpg',
};

const ubuntu: Distribution = {
  newer: ['devel'],
  components: ['main', 'universe'],
  aliases: ['devel'],
  keyring: 'usr/share/keyrings/ubuntu-archive-keyring.gpg',
};

/**
 * Finds the newer suites of the distribution's archive, at the mirrors that this machine's apt already uses, in the
 * order to try them. Empty if the system is not Debian-like, or lists no mirror of its archive.
 *
 * @param root the root of the system's files, normally `/`.
 * @throws the file system's error if a file exists but cannot be read.
 */
export async function newerSuites(root: string): Promise<NewerSuite[]> {
  const release = await osRelease(root);
  const distribution = distributionOf(release);
  if (!distribution) return [];
  const own = new Set(
    [release.get('VERSION_CODENAME'), release.get('UBUNTU_CODENAME'), ...distribution.aliases].filter(Boolean),
  );
  const keyring = join(root, distribution.keyring);
  const keyringIsThere = await access(keyring).then(
    () => true,
    () => false,
  );

  const mirrors = (await readAptSources(join(root, 'etc/apt')))
    // Other publishers also use the distribution's suite names, but have their own keys and no newer suites. So mirrors
    // with another key are tried last.
    .filter(({ suites, components }) => components.includes('main') && suites.some((suite) => own.has(suite)))
    .flatMap(({ uris, signedBy }) => uris.map((uri) => ({ uri: uri.replace(/\/+$/, ''), signedBy })))
    .filter(({ uri }) => !uri.startsWith('cdrom:'))
    .sort((a, b) => Number(isForeign(a.signedBy)) - Number(isForeign(b.signedBy)));
  const distinct = [...new Map(mirrors.toReversed().map((mirror) => [mirror.uri, mirror])).values()].toReversed();
  return distinct.slice(0, maxMirrors).flatMap(({ uri, signedBy }) =>
    distribution.newer.map((suite) => ({
      uri,
      suite,
      components: distribution.components,
      signedBy: signedBy ?? (keyringIsThere ? keyring : undefined),
    })),
  );
}

function isForeign(signedBy: string | undefined): boolean {
  return signedBy !== undefined && !/(debian|ubuntu)-archive/.test(signedBy);
}

function distributionOf(release: Map<string, string>): Distribution | undefined {
  const ids = [release.get('ID') ?? '', ...(release.get('ID_LIKE') ?? '').split(' ')];
  if (ids.includes('ubuntu')) return ubuntu;
  return ids.includes('debian') ? debian : undefined;
}

/** Fields of os-release: https://www.freedesktop.org/software/systemd/man/latest/os-release.html */
async function osRelease(root: string): Promise<Map<string, string>> {
  const fields = new Map<string, string>();
  let text: string;
  try {
    text = await readFile(join(root, 'etc/os-release'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return fields;
    throw error;
  }
  for (const line of text.split('\n')) {
    const match = /^([A-Z_]+)=(["']?)(.*)\2$/.exec(line.trim());
    if (match) fields.set(match[1] ?? '', match[3] ?? '');
  }
  return fields;
}
