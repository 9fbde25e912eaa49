/** The registry is read as its leader has it, whatever a replica lacks. */
import { setImmediate } from 'node:timers/promises';
import { valueIn } from '@coxswain/bus';
import { PersonaPause, type RememberedRule, STREAMS, type StoredRule, subjects, TenantId } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { listRememberedRules } from '../src/nats-remembered-rules.ts';
import { firstOfEachTenant, readRegistry } from '../src/read-keys.ts';
import { damaged, FakeCluster, type FakeReplica, type Kept, whole } from './fake-cluster.ts';

const tenant = TenantId.parse('default');

/** The registry with a leader and another replica, to which all direct gets go. */
function registry(leader: FakeReplica, other: FakeReplica) {
  const cluster = new FakeCluster({
    [`KV_${STREAMS.registry}`]: { leader: 'n1', replicas: { n1: leader, n2: other } },
  });
  cluster.answering = 'n2';
  return cluster;
}

const pauseOf = (seq: number, name: string): Kept => ({
  seq,
  subject: subjects.personaPause(tenant, name),
  text: JSON.stringify({ v: 1, since: '2026-01-01T00:00:00.000Z' } satisfies PersonaPause),
});

/** The personas that are paused. */
async function paused({ nc }: FakeCluster): Promise<string[]> {
  const names: string[] = [];
  for await (const { subject, data } of readRegistry(nc, subjects.personaPauses))
    if (valueIn(data, PersonaPause)) names.push(subject.split('.').at(-1) as string);
  return names;
}

const both = [pauseOf(1, 'ada'), pauseOf(2, 'ben')];
const resumed = { ...pauseOf(1, 'ben'), text: '', headers: { 'KV-Operation': 'DEL' } };

test.each([
  { what: 'lacks a key', other: whole(both[0] as Kept) },
  { what: 'has an older value of a key', other: whole(both[0] as Kept, resumed) },
  { what: 'cannot read a key', other: damaged(whole(...both), 2) },
])('a pause is seen although another replica $what', async ({ other }) => {
  expect(await paused(registry(whole(...both), other))).toEqual(['ada', 'ben']);
});

test('a key that the leader reports and cannot read comes from another replica', async () => {
  const reads = await paused(registry(damaged(whole(...both), 2), whole(...both)));
  expect(reads).toEqual(['ada', 'ben']);
});

test('a key that no replica serves is an error, and is never left out', async () => {
  const broken = damaged(whole(...both), 2);
  await expect(paused(registry(broken, broken))).rejects.toMatchObject({ code: 'record_unreadable' });
});

test('values are read as they are taken, and not all at once', async () => {
  const many = whole(...Array.from({ length: 1_000 }, (_, i) => pauseOf(i + 1, `p${i}`)));
  const cluster = registry(many, many);
  const read = readRegistry(cluster.nc, subjects.personaPauses);
  await read.next();
  expect(cluster.asked.filter((subject) => subject.startsWith('$JS.API.STREAM.MSG.GET')).length).toBeLessThan(10);
});

test('of each tenant, only the first keys are read', async () => {
  const keys = async function* () {
    for (let i = 0; i < 5; i++) yield subjects.announcement('hooks', 'red', `s${i}`);
    yield subjects.announcement('hooks', 'blue', 'policy');
  };
  const read: string[] = [];
  for await (const key of firstOfEachTenant(keys(), 2)) read.push(key);
  expect(read).toEqual([
    ...['s0', 's1'].map((name) => subjects.announcement('hooks', 'red', name)),
    subjects.announcement('hooks', 'blue', 'policy'),
  ]);
});

const ruleOf = (id: string): RememberedRule => ({
  id,
  persona: 'ada',
  source: 'host',
  fingerprint: 'f1',
  root: '/work',
  session: 's1',
  scope: 'persona',
  tool: 'read_file',
  match: { kind: 'path', path: 'a' },
  action: 'allow',
  at: '2026-01-01T00:00:00.000Z',
});
const storedRule = (seq: number, id: string, revoked?: StoredRule['revoked']): Kept => ({
  seq,
  subject: subjects.rememberedRule(tenant, ruleOf(id)),
  text: JSON.stringify({ rule: ruleOf(id), revoked } satisfies StoredRule),
});

test('a revocation is seen although another replica has the rule as it was', async () => {
  const { nc } = registry(whole(storedRule(2, 'r1', { at: '2026-01-02T00:00:00.000Z' })), whole(storedRule(1, 'r1')));
  expect((await listRememberedRules(nc, tenant, 'ada')).map(({ revoked }) => Boolean(revoked))).toEqual([true]);
});

test('many rules are read at once: each start of a run reads them', async () => {
  const many = whole(...Array.from({ length: 100 }, (_, i) => storedRule(i + 1, `r${i}`)));
  const cluster = registry(many, many);
  let open = 0;
  let openMax = 0;
  cluster.held = async (subject) => {
    if (!subject.startsWith('$JS.API.STREAM.MSG.GET')) return;
    openMax = Math.max(openMax, ++open);
    await setImmediate();
    open--;
  };
  expect(await listRememberedRules(cluster.nc, tenant, 'ada')).toHaveLength(100);
  expect(openMax).toBe(32);
});
