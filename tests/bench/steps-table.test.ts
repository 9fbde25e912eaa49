import { expect, test } from 'vitest';
import type { PeerRun } from './peers.ts';
import { type Report, resultName } from './report.ts';
import { stepsTable } from './steps-table.ts';

const peerRun = (steps: number): PeerRun => {
  const level = { sessions: 1, turns: 300, steps_s: steps, turn_p50_ms: 2, turn_p99_ms: 4 };
  const versions = { server: '1.0.0' };
  return { versions, durability: 'fsync', machine: { node: 'v24.0.0' }, c1: level, c50: level, c500: level };
};

function ourRun(steps: number) {
  const level = { steps_s: steps, turn_p50_ms: 1, turn_p99_ms: 2, host_cpu_us_per_step: 200 };
  const warm = { ...level, raw_appends_s: steps * 4 };
  return { server: '2.12.0', started: { 1: level, 50: level, 500: level }, warm: { 1: warm, 50: warm, 500: warm } };
}

function report(busyBefore: number): Report {
  const peers = [{ name: 'Restate', runs: [peerRun(400), peerRun(500)] }];
  return {
    at: '2030-01-01T00:00:00.000Z',
    commit: 'abc1234',
    changed: false,
    quick: false,
    node: 'v24.0.0',
    cpus: 2,
    cpu: 'a processor',
    memory_gib: 8,
    complete: true,
    steps: { ours: [ourRun(600), ourRun(800)], peers, busy_before: [0.01, busyBefore], load: [0.1, 2] },
  };
}

test('a row has medians, the lowest and the highest run, the ratio, and a missed goal in bold', () => {
  const rows = stepsTable([report(0.02)]).split('\n');
  expect(rows).toContain('| 24.0.0 | 1 | 700 (600–800) | 450 (400–500) | 1.56 | **2 × Restate** |');
  expect(rows).toContain('| 24.0.0 | 50 | 700 (600–800) | 450 (400–500) | 1.56 | 1.5 × Restate |');
  expect(rows).toContain('| 24.0.0 | 500 | 700 (600–800) | 2800 (2400–3200) | 0.25 | **0.5** | 200 (200–200) µs |');
});

test('the line above the tables has the circumstances of both sides', () => {
  const [first] = stepsTable([report(0.02)]).split('\n');
  expect(first).toBe(
    '2030-01-01, commit `abc1234`. 2 cores (a processor), 8 GiB. Node 24.0.0; nats-server 2.12.0; Restate on Node 24.0.0 ' +
      '(server 1.0.0; fsync). Steps per second: medians of 2 runs in rotation, with the lowest and the highest. ' +
      'Load average 0.1 before and 2 after; at most 2 % of the CPU time was in use before a run.',
  );
});

test('a machine that was busy before one run marks the tables', () => {
  expect(stepsTable([report(0.11)])).toMatch(/^\*\*Busy machine: do not publish\.\*\*/);
});

test('a peer that failed marks the tables', () => {
  const { steps, ...rest } = report(0);
  const peers = [{ name: 'Restate', runs: [peerRun(400)], failed: 'no server' }];
  const table = stepsTable([{ ...rest, steps: { ...(steps as NonNullable<Report['steps']>), peers } }]);
  expect(table).toMatch(/^\*\*Restate failed after 1 runs: do not publish its figures\.\*\*/);
});

test('two runs of one day, one commit and one Node have files of their own', () => {
  const later = { ...report(0), at: '2030-01-01T00:01:02.000Z' };
  expect(resultName(report(0), true)).toBe('2030-01-01T000000-abc1234-node-v24.0.0.json');
  expect(resultName(later, false)).toBe('partial-2030-01-01T000102-abc1234-node-v24.0.0.json');
});

test('without the part steps there is no table', () => {
  const { steps: _, ...other } = report(0);
  expect(stepsTable([other])).toBe('');
});
