/** The npm packages that carry nats-server: what the release script builds from an archive, and what it refuses. */
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { findServer } from '@coxswain/adapter-embedded-server';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tarGz, zip } from '../libs/adapters/embedded-server/test/release-archives.ts';
import { temporaryDir, versionScript, writeExecutable } from '../libs/adapters/embedded-server/test/server-binary.ts';
import { type BuildOptions, buildServerPackages } from '../scripts/release/build-nats-server-packages.ts';

const here = { platform: process.platform, arch: process.arch };
const windows = { platform: 'win32', arch: 'x64' };
const version = '2.15.1';
const hereAsset = `nats-server-v${version}-${here.platform}-${here.arch === 'x64' ? 'amd64' : here.arch}.tar.gz`;
const windowsAsset = `nats-server-v${version}-windows-amd64.zip`;

/** A publisher with an archive for this machine and one for Windows; what was requested, and what was reported. */
async function release(server = versionScript(version)) {
  const archives: Record<string, Buffer> = {
    [hereAsset]: tarGz('nats-server', server),
    [windowsAsset]: zip('nats-server', 'a program for Windows'),
  };
  const digests = Object.fromEntries(
    Object.entries(archives).map(([name, bytes]) => [name, createHash('sha256').update(bytes).digest('hex')]),
  );
  const sums = Object.entries(digests).map(([name, digest]) => `${digest}  ${name}\n`);
  const requests: string[] = [];
  const publisher = createServer((request, response) => {
    const name = request.url?.split('/').at(-1) ?? '';
    requests.push(name);
    response.end(name === 'SHA256SUMS' ? sums.join('') : archives[name]);
  });
  await new Promise<void>((resolve) => publisher.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void publisher.close());
  const baseUrl = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}`;
  const said: string[] = [];
  const options: BuildOptions = {
    out: join(temporaryDir(), 'packages'),
    source: { baseUrl, version, digests },
    report: { line: (text) => said.push(text), progress: () => {} },
  };
  return { options, digests, requests, said };
}

function manifestOf(folder: string) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

describe.skipIf(process.platform === 'win32')('a package with nats-server', () => {
  test('is built from the pinned archive, and its server is found when it is installed', async () => {
    const { options, digests } = await release();
    const [folder = '', other = ''] = await buildServerPackages({ ...options, platforms: [here, windows] });
    const name = `@coxswain/nats-server-${here.platform}-${here.arch}`;
    expect(manifestOf(folder)).toMatchObject({ name, version, os: [here.platform], cpu: [here.arch] });
    // npm publishes with provenance only from the repository that the manifest names.
    expect(manifestOf(folder).repository.url).toContain('/coxswain');
    for (const key of ['scripts', 'bin', 'private']) expect(manifestOf(folder)).not.toHaveProperty(key);
    expect(readFileSync(join(folder, 'LICENSE'), 'utf8')).toBe('the licence');
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain(digests[hereAsset]);
    expect(readdirSync(join(other, 'bin'))).toEqual(['nats-server.exe']);

    const installed = join(dirname(options.out), 'node_modules');
    cpSync(folder, join(installed, name), { recursive: true });
    const env = { PATH: '', COX_FETCH: 'never', COX_CACHE_DIR: options.out };
    const found = await findServer({ env, moduleDir: join(installed, 'coxswain') });
    expect(found).toEqual({
      kind: 'binary',
      source: 'package',
      path: join(installed, name, 'bin/nats-server'),
      version,
    });
  });

  test('without a pinned digest is built on request only', async () => {
    const { options, digests, requests, said } = await release();
    const unpinned = { ...options, platforms: [windows], source: { ...options.source, digests: {} } };
    await expect(buildServerPackages(unpinned)).rejects.toThrow(`no digest is pinned for ${windowsAsset}`);
    expect(requests).toEqual([]);
    await buildServerPackages({ ...unpinned, allowUnpinned: true });
    expect(said.join('\n')).toContain(`No digest of ${windowsAsset} is pinned`);
    expect(said.join('\n')).toContain(`'${windowsAsset}': '${digests[windowsAsset]}'`);
  });

  test('with a server of another version is refused', async () => {
    const { options } = await release(versionScript('2.14.0'));
    const built = buildServerPackages({ ...options, platforms: [here] });
    await expect(built).rejects.toThrow('holds nats-server 2.14.0, and its package is for 2.15.1');
  });

  test('from a binary of this machine is private, so that npm does not publish it', async () => {
    const { options, requests } = await release();
    const binary = writeExecutable(join(dirname(options.out), 'mine'), versionScript('2.13.0'));
    const [folder = ''] = await buildServerPackages({ ...options, binary });
    expect(manifestOf(folder)).toMatchObject({ private: true, version });
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain('nats-server 2.13.0 of one machine');
    expect(requests).toEqual([]);
    await expect(buildServerPackages({ ...options, binary, platforms: [windows] })).rejects.toThrow('not of win32-x64');
  });
});
