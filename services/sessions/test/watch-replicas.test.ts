/** The background check of replicas: who checks, what is counted, and what `cox health` says. */
import type { CheckedStream, ReplicaFinding } from '@coxswain/adapter-nats';
import type { Log } from '@coxswain/ports';
import { expect, onTestFinished, test } from 'vitest';
import { watchReplicas } from '../src/watch-replicas.ts';

const finding: ReplicaFinding = {
  stream: 'COX_JOURNAL_0',
  kind: 'missing',
  server: 'n2',
  seq: 7,
  message: 'the replica on n2 does not serve message 7, which n1, n3 serves',
  remedy: 'stop server n2',
};

/** A check that finds something the first time, and nothing afterwards. */
function watched(isFirst: () => Promise<boolean>) {
  const logged: string[] = [];
  const log: Log = {
    debug: () => {},
    info: (_, message) => void logged.push(`info ${message}`),
    warn: (_, message) => void logged.push(`warn ${message}`),
    error: (_, message) => void logged.push(`error ${message}`),
  };
  const checks = { made: 0, damaged: true };
  async function* check(): AsyncGenerator<CheckedStream> {
    checks.made++;
    yield { stream: finding.stream, servers: ['n1', 'n2', 'n3'], findings: checks.damaged ? [finding] : [] };
  }
  const watch = watchReplicas({ isFirst, check, log }, { firstMs: 0, everyMs: 5, retryMs: 5 });
  onTestFinished(() => watch.stop());
  return { watch, checks, logged };
}

test('counts what was found by kind, says the first in a sentence, logs it once, and forgets what is healed', async () => {
  const { watch, checks, logged } = watched(async () => true);
  expect([...watch.counts()]).toEqual([]);
  await expect.poll(() => checks.made).toBeGreaterThan(2);
  expect(watch.counts().get('missing')).toBe(1);
  expect(watch.counts().get('unreadable')).toBe(0);
  expect(watch.remark()).toBe(`COX_JOURNAL_0: ${finding.message}; run cox doctor for the remedy`);
  expect(logged).toEqual([`error a replica is damaged or incomplete: ${finding.message}`]);
  checks.damaged = false;
  await expect.poll(() => watch.remark()).toBeNull();
  expect(watch.counts().get('missing')).toBe(0);
  expect(logged[1]).toBe('info all replicas are complete again');
});

test('a host that is not the first checks nothing; one that cannot ask says so and goes on', async () => {
  let answers = 0;
  let isFirst = false;
  const { watch, checks, logged } = watched(async () => {
    answers++;
    if (answers === 1) throw new Error('the bus is away');
    return isFirst;
  });
  await expect.poll(() => answers).toBeGreaterThan(2);
  expect(checks.made).toBe(0);
  expect([...watch.counts()]).toEqual([]);
  expect(logged).toEqual(['warn the replicas cannot be checked now']);
  isFirst = true;
  await expect.poll(() => checks.made).toBeGreaterThan(0);
});

test('keeps what a check found before it failed, and checks again after the pause for failures', async () => {
  const unchecked: ReplicaFinding = { ...finding, stream: 'COX_TIMERS', kind: 'unchecked', server: null, seq: null };
  let made = 0;
  async function* check(): AsyncGenerator<CheckedStream> {
    made++;
    if (made === 1) throw new Error('the bus is away');
    yield { stream: finding.stream, servers: ['n1'], findings: made === 2 ? [finding] : [] };
    if (made === 2) throw new Error('the bus is away');
    yield { stream: unchecked.stream, servers: [], findings: [unchecked] };
    if (made === 4) await new Promise(() => undefined);
  }
  const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const remarks: (string | null)[] = [];
  const isFirst = async () => {
    remarks.push(watch.remark());
    return true;
  };
  // The regular pause is never over within this test.
  const watch = watchReplicas({ isFirst, check, log }, { firstMs: 0, everyMs: 3_600_000, retryMs: 1 });
  onTestFinished(() => watch.stop());
  await expect.poll(() => made).toBe(4);
  expect(remarks).toEqual([
    null,
    null,
    expect.stringContaining('COX_JOURNAL_0'),
    expect.stringContaining('COX_TIMERS'),
  ]);
  expect(watch.counts().get('unchecked')).toBe(1);
});
