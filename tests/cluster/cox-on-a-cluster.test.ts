/** What `cox` says of a cluster: how many copies it keeps, and that nobody answers while too few of its servers live. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { cox, REPOSITORY } from '../e2e/kit/child.ts';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { scripted } from '../e2e/kit/scripts.ts';
import { type Cluster, startCluster } from './cluster.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 });

describe('a cluster of three servers', () => {
  let cluster: Cluster;
  let url: string;
  const run = (...args: string[]) => cox([...args, '--json'], { env: { NATS_URL: url } });
  const streamChecks = async () =>
    (await run('doctor')).json.filter(({ name }) => (name as string).startsWith('stream_')) as { message: string }[];

  beforeAll(async () => {
    cluster = await startCluster();
    url = cluster.natsUrl;
    const made = await run('admin', 'streams');
    expect(made.code, made.told).toBe(0);
    expect(made.json).toMatchObject([{ type: 'streams', copies: 1 }]);
  });
  afterAll(async () => {
    await cluster?.stop();
    await removeScratch();
  });

  it('is given three copies, which are there when it is said', async () => {
    const raised = await run('admin', 'streams', '--replicas', '3');
    expect(raised.code, raised.told).toBe(0);
    expect(raised.json).toMatchObject([{ type: 'streams', copies_before: 1, copies: 3 }]);
    const checks = await streamChecks();
    expect(checks.length).toBeGreaterThan(20);
    for (const check of checks)
      expect(check).toMatchObject({ status: 'ok', message: expect.stringMatching(/, 3 copies$/) });
  });

  it('loses no copy where nobody has said yes to it', async () => {
    const refused = await run('admin', 'streams', '--replicas', '1');
    expect([refused.code, refused.json]).toMatchObject([
      2,
      [{ code: 'usage', message: expect.stringContaining('3 -> 1') }],
    ]);
    const [check] = await streamChecks();
    expect(check?.message).toContain('3 copies');
  });

  it('rewrites the blocks that an earlier version compressed, on every server, and keeps the sequences', async () => {
    const nc = await cluster.connect();
    const ask = async <T>(subject: string, body = {}) => (await nc.request(subject, JSON.stringify(body))).json<T>();
    const infoOf = () => ask<{ config: object; state: object }>(`$JS.API.STREAM.INFO.${STREAMS.snapshots}`);
    const blocks = () =>
      cluster.nodes.map(({ storeDir }) => {
        const folder = join(storeDir, 'jetstream/$G/streams', STREAMS.snapshots, 'msgs');
        const files = readdirSync(folder).filter((file) => file.endsWith('.blk'));
        return files.map((file) => readFileSync(join(folder, file)).subarray(0, 3).toString());
      });
    // A server compresses from when it opens the store: a stream that is updated to `s2` does so only after a restart.
    const { config } = await infoOf();
    await ask(`$JS.API.STREAM.DELETE.${STREAMS.snapshots}`);
    const compressed = { ...config, compression: 's2' };
    await vi.waitFor(
      async () =>
        expect(await ask(`$JS.API.STREAM.CREATE.${STREAMS.snapshots}`, compressed)).not.toHaveProperty('error'),
      { timeout: 60_000 },
    );
    // A block is compressed when it is full, at 8 MiB.
    const filler = 'compressible '.repeat(70_000);
    // Until the new stream has a leader, no one responds.
    for (let i = 0; i < 12; i++)
      await vi.waitFor(() => nc.request(subjects.snapshot(sessionRef(`filler-${i}`)), filler, { timeout: 10_000 }), {
        timeout: 60_000,
      });
    await vi.waitFor(() => expect(blocks().map(([first]) => first)).toEqual(['cmp', 'cmp', 'cmp']), {
      timeout: 20_000,
    });
    const { state } = await infoOf();
    const risks = async () => (await streamChecks()).filter(({ message }) => message.includes('compressed'));
    expect(await risks()).toMatchObject([{ status: 'warning', remedy: 'cox admin streams --rewrite' }]);

    const migrated = await run('admin', 'streams');
    expect(migrated.json, migrated.told).toMatchObject([
      { uncompressed: [STREAMS.snapshots], at_risk: [STREAMS.snapshots], rewritten: [] },
    ]);
    expect(migrated.stderr).toContain('cox admin streams --rewrite');
    expect(await risks()).toHaveLength(1);

    // A copy that cannot be read stops it before any copy is removed.
    const node = cluster.node('n3');
    const folder = join(node.storeDir, 'jetstream/$G/streams', STREAMS.snapshots);
    await node.terminate();
    const block = join(folder, 'msgs/1.blk');
    const bytes = readFileSync(block);
    writeFileSync(block, bytes.fill(0, bytes.length >> 2, bytes.length >> 1));
    await node.start();
    await cluster.ready();
    const stopped = await run('admin', 'streams', '--rewrite');
    expect([stopped.code, stopped.json], stopped.told).toMatchObject([
      1,
      [{ code: 'rewrite_stopped', message: expect.stringContaining('n3') }],
    ]);
    expect((await infoOf()).config).toMatchObject({ num_replicas: 3 });
    // Its server gets it anew from the others.
    await node.terminate();
    rmSync(folder, { recursive: true });
    await node.start();
    await cluster.ready();

    const rewritten = await run('admin', 'streams', '--rewrite');
    expect(rewritten.json, rewritten.told).toMatchObject([{ at_risk: [], rewritten: [STREAMS.snapshots], copies: 3 }]);
    expect(blocks().flat()).not.toContain('cmp');
    expect((await infoOf()).state).toMatchObject({ ...state, consumer_count: expect.any(Number) });
    expect(await risks()).toEqual([]);
    await nc.close();
  });

  it('has not servers enough for four copies, and says so', async () => {
    const refused = await run('admin', 'streams', '--replicas', '4');
    expect(refused.code).toBe(1);
    expect(refused.json).toMatchObject([{ code: 'too_few_servers', message: expect.stringContaining('4 replicas') }]);
  });

  it('is read by nobody while two of three stand still: every command says so in one sentence, and ends', async () => {
    const [first, ...others] = cluster.nodes;
    url = `nats://${cluster.token}@${first?.url.replace('nats://', '')}`;
    const model = await scripted([{ text: 'Done.' }]);
    const imported = await run(
      'session',
      'import',
      join(REPOSITORY, 'tests/traces/rejected-commands.jsonl'),
      '--as',
      'abc',
    );
    expect(imported.code, imported.told).toBe(0);
    for (const node of others) await node.pause();
    // Whoever sends looks first at what it sends to, where that can still be read: then it is the command that is not stored.
    const notSent = expect.stringMatching(/^(command_not_stored|nats_unreachable)$/);
    const lines: [string[], unknown][] = [
      [['session', 'list'], 'nats_unreachable'],
      [['session', 'show', 'abc'], 'nats_unreachable'],
      [['approval', 'list'], 'nats_unreachable'],
      [['session', 'export', 'abc'], 'nats_unreachable'],
      [['steer', 'abc', 'Turn back.'], notSent],
      [['run', 'Go.', '--model', model, '--detach'], notSent],
    ];
    const ended = await Promise.all(lines.map(([args]) => run(...args)));
    await cluster.restore();
    for (const [index, [[name], code]] of lines.entries()) {
      const { code: exit, stderr, stdout, told } = ended[index] as (typeof ended)[number];
      expect([name, exit], told).toEqual([name, 1]);
      expect(JSON.parse(stdout), told).toMatchObject({ type: 'error', code });
      expect(stderr, told).not.toContain('    at ');
      expect(stderr, told).not.toContain('not enabled');
    }
  });
});

it('a server that stands alone has no room for three copies', async ({ onTestFinished }) => {
  const cluster = await startCluster({ size: 1 });
  onTestFinished(() => cluster.stop());
  const refused = await cox(['admin', 'streams', '--replicas', '3', '--json'], { env: { NATS_URL: cluster.natsUrl } });
  expect(refused.json, refused.told).toMatchObject([{ type: 'error', code: 'too_few_servers' }]);
});
