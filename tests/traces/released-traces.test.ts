/**
 * Journals of a release lie on users' disks: every later release reads them, and replays them or rejects them by their
 * machine version.
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalJson } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';
import { afterEach, describe, expect, test } from 'vitest';
import {
  freezeTraces,
  frozenFiles,
  frozenVersions,
  keepFrozen,
  releasedVersions,
  SOUND_VERDICTS,
  type TraceFiles,
  verdictOn,
} from './released-traces.ts';
import { goldenFiles, recordsIn, traceBytes } from './trace-files.ts';

const released = releasedVersions(readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8'));
const golden = goldenFiles();
/** Enough for the rules. */
const few: TraceFiles = new Map([...golden].filter(([path]) => /^(tool-calls|daemon|approval-of-three)\./.test(path)));
const hashesOf = (files: TraceFiles) => [...files].map(([path, bytes]) => `${path} ${sha256Hex(bytes)}`);

describe('the traces of a release:', () => {
  test('each release of the changelog has its traces', () => {
    expect(frozenVersions()).toEqual(expect.arrayContaining(released));
  });

  test('a version that is not released yet has the golden traces', () => {
    for (const version of frozenVersions().filter((one) => !released.includes(one)))
      expect([...frozenFiles(version).keys()], 'run npm run trace:release').toEqual([...golden.keys()]);
  });

  // The golden traces are replayed by their own test: only other bytes are replayed here.
  test.each(frozenVersions())('%s: every trace replays, or is rejected by its machine version', async (version) => {
    const files = frozenFiles(version);
    for (const [path, bytes] of files) {
      const isGolden = sha256Hex(golden.get(path) ?? '') === sha256Hex(bytes);
      if (isGolden || !path.endsWith('.jsonl')) continue;
      expect([path, SOUND_VERDICTS]).toEqual([path, expect.arrayContaining([await verdictOn(files, nameOf(path))])]);
    }
  });

  test('the changelog names released versions', () => {
    expect(releasedVersions('## 0.1.0, not yet released\n')).toEqual([]);
    expect(releasedVersions('## [0.2.0] - 2027-01-01\n\n## 0.1.0, 2026-12-01\n')).toEqual(['0.1.0', '0.2.0']);
  });
});

// Before the first release: the rules for a release, on golden traces that are frozen for the length of a test.
describe('frozen traces', () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  async function frozen(versions: readonly string[] = ['1.0.0']): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'released-'));
    folders.push(folder);
    for (const version of versions) freezeTraces(version, [], few, folder);
    return folder;
  }

  /** Those traces with one that another machine could have made: changed, and chained again. */
  function remade(name: string, change: (record: Changeable) => void): TraceFiles {
    let prevHash: string | undefined;
    const records = recordsIn(few.get(`${name}.jsonl`) as Uint8Array).map((bytes) => {
      const record = JSON.parse(Buffer.from(bytes).toString('utf8')) as Changeable;
      change(record);
      if (prevHash !== undefined) record.prev_hash = prevHash;
      const changed = Buffer.from(canonicalJson(record), 'utf8');
      prevHash = sha256Hex(changed);
      return changed;
    });
    return new Map([...few, [`${name}.jsonl`, traceBytes(records)]]);
  }
  type Changeable = { n: number; prev_hash: string; events: Record<string, unknown>[]; [member: string]: unknown };
  const madeBy = (version: number) => (record: Changeable) => {
    for (const event of record.events) if (event.type === 'agent_start') event.machine_version = version;
  };

  test('store no second copy of the golden traces', async () => {
    const folder = await frozen();
    expect(hashesOf(frozenFiles('1.0.0', golden, folder))).toEqual(hashesOf(few));
    expect(existsSync(join(folder, '1.0.0.br'))).toBe(false);
  });

  test('of a released version never change', async () => {
    const folder = await frozen();
    freezeTraces('1.0.0', ['1.0.0'], few, folder);
    const later = remade('tool-calls', madeBy(MACHINE_VERSION + 1));
    expect(() => freezeTraces('1.0.0', ['1.0.0'], later, folder)).toThrow('1.0.0 is released');
  });

  test('of a released version are packed before a new recording replaces one, those of the next follow it', async () => {
    const folder = await frozen(['1.0.0', '1.1.0']);
    const later = remade('tool-calls', madeBy(MACHINE_VERSION + 1));
    keepFrozen(['1.0.0'], few, later, folder);
    expect(hashesOf(frozenFiles('1.0.0', later, folder))).toEqual(hashesOf(few));
    expect(hashesOf(frozenFiles('1.1.0', later, folder))).toEqual(hashesOf(later));
    // A second recording finds the files packed.
    keepFrozen(['1.0.0'], later, few, folder);
    expect(hashesOf(frozenFiles('1.0.0', new Map(), folder))).toEqual(hashesOf(few));
  });

  test('are missing, by version, if a golden trace was replaced by hand', async () => {
    const folder = await frozen();
    const edited = remade('tool-calls', madeBy(9));
    expect(() => frozenFiles('1.0.0', edited, folder)).toThrow('a trace of 1.0.0 is missing');
    await writeFile(join(folder, '1.0.0.sha256'), `${'0'.repeat(64)}  tool-calls.jsonl\n`);
    expect(() => frozenFiles('1.0.0', golden, folder)).toThrow('a trace of 1.0.0 is missing');
  });

  test('are rejected by a later machine that has removed their version from its list', async () => {
    const later = new Set([...REPLAYED_VERSIONS].filter((version) => version !== MACHINE_VERSION));
    expect(await verdictOn(few, 'tool-calls', later)).toBe('refused by its machine version');
    const files = remade('tool-calls', madeBy(MACHINE_VERSION + 1));
    expect(await verdictOn(files, 'tool-calls')).toBe('refused by its machine version');
  });

  test('replay on a later machine that keeps their version on its list and decides the same', async () => {
    const earlier = MACHINE_VERSION + 1;
    for (const name of ['tool-calls', 'daemon', 'approval-of-three']) {
      const files = remade(name, madeBy(earlier));
      expect(await verdictOn(files, name, new Set([...REPLAYED_VERSIONS, earlier]))).toBe('replays');
    }
  });

  test('fail for a machine that lists their version and decides otherwise', async () => {
    const files = remade('tool-calls', (record) => {
      for (const event of record.events) if (event.type === 'turn_end') event.turn = 7;
    });
    const verdict = await verdictOn(files, 'tool-calls');
    expect(verdict).toMatch(/^replay_diverged: record \d+ differs at \/events\/\d+\/turn/);
    expect(SOUND_VERDICTS).not.toContain(verdict);
  });

  test('fail for a release that cannot read them, whatever their machine version', async () => {
    const files = remade('tool-calls', (record) => {
      record.v = 99;
      madeBy(MACHINE_VERSION + 1)(record);
    });
    await expect(verdictOn(files, 'tool-calls')).rejects.toThrow('is of version 99');
  });
});

const nameOf = (path: string) => path.slice(0, -'.jsonl'.length);
