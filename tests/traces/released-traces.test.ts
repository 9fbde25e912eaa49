/**
 * Journals of a release lie on users' disks: every later release reads them, and replays them or says by their machine
 * version that it does not.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalJson } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';
import { afterEach, describe, expect, test } from 'vitest';
import { AS_IT_MUST_BE, verdictOn } from './released-traces.ts';
import { RELEASED, readTrace, releasesWithTraces, releaseTraces, traceBytes, traceNames } from './trace-files.ts';

describe('the traces of a release:', () => {
  test('each release of the changelog has its traces', async () => {
    const changelog = await readFile(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8');
    const released = [...changelog.matchAll(/^## \[(\d[^\]]*)\]/gm)].map(([, version]) => version as string);
    expect(releasesWithTraces()).toEqual(released.sort());
  });

  const traces = releasesWithTraces().flatMap((version) =>
    traceNames(join(RELEASED, version)).map((name) => [version, name] as const),
  );
  test.each(traces)('%s: %s', async (version, name) => {
    expect(AS_IT_MUST_BE).toContain(await verdictOn(name, join(RELEASED, version)));
  });
});

// There may be no release yet: what would be held against one is shown on today's traces, kept as if this were its day.
describe('what is kept at a release', () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  async function released(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'released-'));
    folders.push(folder);
    await releaseTraces('1.0.0', folder);
    return join(folder, '1.0.0');
  }

  /** One trace, as another machine would have made it: changed, and chained again. */
  async function remade(folder: string, name: string, change: (record: Changeable) => void): Promise<void> {
    let prevHash: string | undefined;
    const records = readTrace(name, folder).map((bytes) => {
      const record = JSON.parse(Buffer.from(bytes).toString('utf8')) as Changeable;
      change(record);
      if (prevHash !== undefined) record.prev_hash = prevHash;
      const remade = Buffer.from(canonicalJson(record), 'utf8');
      prevHash = sha256Hex(remade);
      return remade;
    });
    await writeFile(join(folder, `${name}.jsonl`), traceBytes(records));
  }
  type Changeable = { n: number; prev_hash: string; events: Record<string, unknown>[]; [member: string]: unknown };
  const madeBy = (version: number) => (record: Changeable) => {
    for (const event of record.events) if (event.type === 'agent_start') event.machine_version = version;
  };

  test('is every trace with what it refers to, and replays on the day itself', async () => {
    const folder = await released();
    expect(traceNames(folder)).toEqual(traceNames());
    for (const name of traceNames(folder)) expect([name, await verdictOn(name, folder)]).toEqual([name, 'replays']);
  });

  test('is never kept a second time: it would be another', async () => {
    const folder = await released();
    await expect(releaseTraces('1.0.0', join(folder, '..'))).rejects.toThrow('1.0.0 has its traces already');
  });

  test('is refused by a later machine that has taken its version off the list', async () => {
    const folder = await released();
    const later = new Set([...REPLAYED_VERSIONS].filter((version) => version !== MACHINE_VERSION));
    expect(await verdictOn('tool-calls', folder, later)).toBe('refused by its machine version');
    await remade(folder, 'tool-calls', madeBy(MACHINE_VERSION + 1));
    expect(await verdictOn('tool-calls', folder)).toBe('refused by its machine version');
  });

  test('replays on a later machine that keeps its version on the list and decides as it did', async () => {
    const folder = await released();
    const earlier = MACHINE_VERSION + 1;
    for (const name of ['tool-calls', 'daemon', 'approval-of-three']) {
      await remade(folder, name, madeBy(earlier));
      expect(await verdictOn(name, folder, new Set([...REPLAYED_VERSIONS, earlier]))).toBe('replays');
    }
  });

  test('refutes a machine that has it on the list and decides otherwise', async () => {
    const folder = await released();
    await remade(folder, 'tool-calls', (record) => {
      for (const event of record.events) if (event.type === 'turn_end') event.turn = 7;
    });
    const verdict = await verdictOn('tool-calls', folder);
    expect(verdict).toMatch(/^replay_diverged: record \d+ differs at \/events\/\d+\/turn/);
    expect(AS_IT_MUST_BE).not.toContain(verdict);
  });

  test('refutes a release that cannot read it, whatever it says of its machine', async () => {
    const folder = await released();
    await remade(folder, 'tool-calls', (record) => {
      record.v = 99;
      madeBy(MACHINE_VERSION + 1)(record);
    });
    await expect(verdictOn('tool-calls', folder)).rejects.toThrow('is of version 99');
  });
});
