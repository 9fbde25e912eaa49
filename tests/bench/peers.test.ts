import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problemOfPeers } from './peers.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-peers-test-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A peer that needs these programs; null: it does not say. */
async function peer(name: string, needs: string | null): Promise<void> {
  await mkdir(join(folder, name));
  await writeFile(join(folder, name, 'run.sh'), 'exit 1\n');
  if (needs !== null) await writeFile(join(folder, name, 'needs.sh'), `echo '${needs}'\n`);
}

test('one problem names every missing program of every peer, and every folder without a peer', async () => {
  await peer('bullmq', 'first-server');
  await peer('other', 'second-server\nthird-server\npresent');
  await peer('silent', null);
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'bin', 'present'), '');
  const peers = [folder, '/nowhere/peers'].join(delimiter);
  expect(await problemOfPeers({ COX_BENCH_PEERS: peers, PATH: join(folder, 'bin') })).toBe(
    'COX_BENCH_PEERS: BullMQ needs first-server in PATH; other needs second-server and third-server in PATH; ' +
      '/nowhere/peers contains no peer: a folder with a run.sh',
  );
});

test('peers whose programs are there have no problem, and no peers neither', async () => {
  await peer('bullmq', 'sh');
  expect(await problemOfPeers({ COX_BENCH_PEERS: folder, PATH: '/bin' })).toBeNull();
  expect(await problemOfPeers({})).toBeNull();
});
