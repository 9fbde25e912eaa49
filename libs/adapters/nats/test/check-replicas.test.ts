/** The check of replicas: what it finds, and that it ends where streams or servers do not answer. */
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { CHECKED_STREAMS, type CheckedStream, type CheckPace, checkReplicas } from '../src/check-replicas.ts';
import { damaged, FakeCluster, type FakeReplica, type FakeStream, whole } from './fake-cluster.ts';

afterEach(() => {
  vi.useRealTimers();
});

const SERVERS = ['n1', 'n2', 'n3'];
const at = (seq: number) => ({ seq, subject: 's.a' });
const three = whole(at(1), at(2), at(3));

/** Every stream that is checked, with three replicas each. */
function streams(of: (server: string, stream: string) => FakeReplica): Record<string, FakeStream> {
  const replicas = (stream: string) => Object.fromEntries(SERVERS.map((server) => [server, of(server, stream)]));
  return Object.fromEntries(CHECKED_STREAMS.map((stream) => [stream, { leader: 'n1', replicas: replicas(stream) }]));
}

async function checked({ nc }: FakeCluster, pace: CheckPace = {}): Promise<CheckedStream[]> {
  const found: CheckedStream[] = [];
  for await (const one of checkReplicas(nc, { confirmMs: 0, ...pace })) found.push(one);
  return found;
}

const DAMAGED = CHECKED_STREAMS[3] as string;

test('finds nothing where all replicas are equal', async () => {
  const found = await checked(new FakeCluster(streams(() => three)));
  expect(found).toEqual(CHECKED_STREAMS.map((stream) => ({ stream, servers: SERVERS, findings: [] })));
});

test.each([
  { what: 'steps over a message', replica: damaged(three, 2), kinds: ['missing', 'unreadable'], seq: 2 },
  {
    what: 'has other bytes in a message',
    replica: whole(at(1), { ...at(2), text: 'other' }, at(3)),
    kinds: ['differs'],
    seq: 2,
  },
])('names the server whose replica $what', async ({ replica, kinds, seq }) => {
  const found = await checked(
    new FakeCluster(streams((server, stream) => (server === 'n2' && stream === DAMAGED ? replica : three))),
  );
  const findings = found.flatMap((one) => one.findings);
  expect(new Set(findings.map(({ stream, server }) => `${stream} ${server}`))).toEqual(new Set([`${DAMAGED} n2`]));
  expect(findings.map(({ kind }) => kind).sort()).toEqual(kinds);
  expect(findings.find(({ kind }) => kind === kinds[0])?.seq).toBe(seq);
});

test('reports a stream that has no leader as unchecked, and checks all others', async () => {
  const all = streams(() => three);
  const found = await checked(
    new FakeCluster({ ...all, [DAMAGED]: { ...(all[DAMAGED] as FakeStream), isLeaderless: true } }),
  );
  expect(found.map(({ stream }) => stream)).toEqual(CHECKED_STREAMS);
  expect(found.flatMap(({ findings }) => findings)).toMatchObject([
    { stream: DAMAGED, kind: 'unchecked', server: null, message: expect.stringContaining(DAMAGED) },
  ]);
});

test('checks all streams at once where that is asked for: none waits for another that does not answer', async () => {
  const cluster = new FakeCluster(streams(() => three));
  let asked = 0;
  let answerAll = () => {};
  const allAsked = new Promise<void>((resolve) => {
    answerAll = resolve;
  });
  // No stream answers before each was asked.
  cluster.held = (subject) => {
    if (subject.startsWith('$JS.API.STREAM.INFO.') && ++asked === CHECKED_STREAMS.length) answerAll();
    return allAsked;
  };
  const found = await checked(cluster, { atOnce: Number.POSITIVE_INFINITY });
  expect(found.map(({ stream }) => stream)).toEqual(CHECKED_STREAMS);
  expect(found.flatMap(({ findings }) => findings)).toEqual([]);
});

test('a server that does not answer is waited for once in a look, and named', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const cluster = new FakeCluster(streams(() => three));
  cluster.silent.add('n2');
  let found: CheckedStream[] | null = null;
  void checked(cluster, { atOnce: Number.POSITIVE_INFINITY }).then((all) => {
    found = all;
  });
  let waitedMs = 0;
  while (!found) {
    // A look is confirmed on real timers, after no time.
    await setImmediate();
    await vi.advanceTimersByTimeAsync(100);
    waitedMs += 100;
  }
  // Three looks of two unanswered reads of three seconds, and what passes before the next look starts.
  expect(waitedMs).toBeLessThan(30_000);
  const named = (found as CheckedStream[]).flatMap(({ findings }) =>
    findings.map((one) => `${one.server} ${one.kind}`),
  );
  expect(named).toEqual(CHECKED_STREAMS.map(() => 'n2 unchecked'));
});

// The server checks the subject of the trace first.
test.each(['request', 'trace'])('says that the user may not read a stream: its %s is refused', async (what) => {
  const cluster = new FakeCluster(streams(() => three));
  cluster.refused = (subject, traceTo) =>
    subject.startsWith(`$JS.API.DIRECT.GET.${DAMAGED}`) ? (what === 'trace' ? traceTo : subject) : undefined;
  await expect(checked(cluster)).rejects.toMatchObject({ code: 'not_permitted' });
});
