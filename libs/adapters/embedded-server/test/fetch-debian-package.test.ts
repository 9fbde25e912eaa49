import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { serverVersionAtLeast } from '@coxswain/ports/discovery';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseDeb822Sources, parseOneLineSources } from '../src/find/apt-sources.ts';
import { newerSuites } from '../src/find/debian-archive.ts';
import { fetchDebianPackage } from '../src/find/fetch-debian-package.ts';
import { serverCache } from '../src/find/server-cache.ts';
import { reportTo } from '../src/mod.ts';
import { readServerVersion } from '../src/server-version.ts';
import { fetchBoundMs, temporaryDir } from './server-binary.ts';

const archiveKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** A system of which only these files are there. */
function system(files: Record<string, string>): string {
  const root = temporaryDir();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const bookworm = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n';

describe('the archive is read from the machine’s own apt sources', () => {
  test('one-line format', () => {
    const text = `
# deb http://old.example/debian bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg ] http://a.example/debian bookworm main contrib # ours
deb-src http://a.example/debian bookworm main
deb http://b.example/debian bookworm main
`;
    expect(parseOneLineSources(text)).toEqual([
      {
        uris: ['http://a.example/debian'],
        suites: ['bookworm'],
        components: ['main', 'contrib'],
        signedBy: '/usr/share/keyrings/a.gpg',
      },
      { uris: ['http://b.example/debian'], suites: ['bookworm'], components: ['main'], signedBy: undefined },
    ]);
  });

  test('deb822 format, with a key written into it', () => {
    const text = `Types: deb deb-src
# the mirror of the house
URIs: http://a.example/debian http://b.example/debian
Suites: bookworm
 bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://c.example/debian
Suites: bookworm
Components: main
Enabled: no
`;
    expect(parseDeb822Sources(text)).toEqual([
      {
        uris: ['http://a.example/debian', 'http://b.example/debian'],
        suites: ['bookworm', 'bookworm-updates'],
        components: ['main'],
        signedBy: '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEY\n-----END PGP PUBLIC KEY BLOCK-----',
      },
    ]);
  });

  test('only mirrors of the distribution are asked, each for newer suites', async () => {
    const root = system({
      'etc/os-release': bookworm,
      'etc/apt/sources.list': 'deb http://security.example/debian-security bookworm-security main\n',
      'etc/apt/sources.list.d/a-tool.list': 'deb [signed-by=/k/tool.gpg] https://tool.example bookworm stable\n',
      'etc/apt/sources.list.d/b-other.list': 'deb [signed-by=/k/other.gpg] https://other.example bookworm main\n',
      'etc/apt/sources.list.d/debian.sources':
        'Types: deb\nURIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n',
      'etc/apt/sources.list.d/debian.sources.save':
        'Types: deb\nURIs: http://x.example\nSuites: bookworm\nComponents: main\n',
      'usr/share/keyrings/debian-archive-keyring.gpg': 'keys',
    });
    const keyring = join(root, 'usr/share/keyrings/debian-archive-keyring.gpg');
    expect(await newerSuites(root)).toEqual([
      { uri: 'http://mirror.example/debian', suite: 'testing', components: ['main'], signedBy: keyring },
      { uri: 'http://mirror.example/debian', suite: 'unstable', components: ['main'], signedBy: keyring },
      { uri: 'https://other.example', suite: 'testing', components: ['main'], signedBy: '/k/other.gpg' },
      { uri: 'https://other.example', suite: 'unstable', components: ['main'], signedBy: '/k/other.gpg' },
    ]);
  });

  test('Ubuntu is asked for its development series', async () => {
    const root = system({
      'etc/os-release': 'ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
      'etc/apt/sources.list': 'deb http://archive.example/ubuntu noble main universe\n',
    });
    expect(await newerSuites(root)).toEqual([
      { uri: 'http://archive.example/ubuntu', suite: 'devel', components: ['main', 'universe'], signedBy: undefined },
    ]);
  });

  test('other systems are not asked', async () => {
    expect(await newerSuites(system({ 'etc/os-release': 'ID=fedora\n' }))).toEqual([]);
    expect(await newerSuites(system({}))).toEqual([]);
  });
});

const hasApt = process.platform === 'linux' && ['apt-get', 'dpkg-deb'].every((tool) => runs(tool));
const mirror = hasApt ? (await newerSuites('/'))[0] : undefined;
const reachable =
  mirror !== undefined && existsSync(archiveKeyring) && (await answers(`${mirror.uri}/dists/testing/InRelease`));

function runs(tool: string): boolean {
  return spawnSync(tool, ['--version'], { timeout: 10_000 }).status === 0;
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

describe('the distribution’s package', () => {
  beforeAll(() => {
    if (!reachable) console.warn('NOT TESTED HERE: fetching a Debian package; no apt, or its mirror does not answer.');
  });

  test.runIf(reachable)(
    'is fetched from a newer suite, extracted and run, and the machine’s own apt is left as it was',
    { timeout: fetchBoundMs },
    async () => {
      const dir = temporaryDir();
      const before = aptState();
      const said: string[] = [];
      const cache = serverCache({ COX_CACHE_DIR: dir }, process.platform, process.arch);
      const report = reportTo({ write: (text) => said.push(text) });
      const server = await fetchDebianPackage(cache, {}, report, process.env);
      expect(serverVersionAtLeast(server.version, '2.12.0')).toBe(true);
      expect(await readServerVersion(server.path)).toBe(server.version);
      expect(readdirSync(cache.dir)).toEqual([`${server.version}-${process.platform}-${process.arch}`]);
      expect(said.join('')).toMatch(/Fetching nats-server_\S+\.deb \(\d+\.\d MB\) once from/);
      expect(aptState()).toEqual(before);
    },
  );

  test.runIf(hasApt)('from an archive that nobody has signed is refused', { timeout: 60_000 }, async () => {
    const packages = 'Package: nats-server\nVersion: 2.99.0-1\nArchitecture: all\nFilename: x.deb\nSize: 1\n\n';
    const digest = createHash('sha256').update(packages).digest('hex');
    const path = 'main/binary-all/Packages';
    const architecture = spawnSync('dpkg', ['--print-architecture']).stdout.toString().trim();
    const root = system({
      'etc/os-release': bookworm,
      'debian/dists/testing/Release': `Suite: testing\nArchitectures: all ${architecture}\nComponents: main\nDate: ${new Date().toUTCString()}\nSHA256:\n ${digest} ${packages.length} ${path}\n`,
      [`debian/dists/testing/${path}`]: packages,
    });
    mkdirSync(join(root, 'etc/apt'), { recursive: true });
    writeFileSync(join(root, 'etc/apt/sources.list'), `deb [trusted=yes] file:${root}/debian bookworm main\n`);
    const dir = temporaryDir();
    const cache = serverCache({ COX_CACHE_DIR: dir }, 'linux', process.arch);
    const fetched = fetchDebianPackage(cache, { root }, reportTo({ write: () => {} }), process.env);
    await expect(fetched).rejects.toMatchObject({ code: 'fetch_failed', message: expect.stringMatching(/not signed/) });
    expect(readdirSync(cache.dir)).toEqual([]);
  });
});

/** What a second apt could have touched. */
function aptState(): string {
  return spawnSync('ls', ['-lR', '--full-time', '/var/lib/apt', '/var/cache/apt', '/etc/apt'], {
    timeout: 10_000,
  }).stdout.toString();
}
