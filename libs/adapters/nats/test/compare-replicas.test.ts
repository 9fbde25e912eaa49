/** Every replica of a stream is read and compared, window by window. */
import { afterEach, expect, test, vi } from 'vitest';
import { compareReplicas, readReplicas, servedIn } from '../src/compare-replicas.ts';
import { openTracedReads } from '../src/traced-reads.ts';
import { damaged, FakeCluster, type FakeReplica, type Kept, whole } from './fake-cluster.ts';

afterEach(() => {
  vi.useRealTimers();
});

const STREAM = 'COX_X';
const SERVERS = ['n1', 'n2', 'n3'];
/** More than two windows. */
const LAST = 600;
const all: Kept[] = Array.from({ length: LAST }, (_, i) => ({ seq: i + 1, subject: `s.${i % 7}` }));

function cluster(n2: FakeReplica) {
  const replicas = { n1: whole(...all), n2, n3: whole(...all) };
  const fake = new FakeCluster({ [STREAM]: { leader: 'n1', replicas } });
  return { fake, reads: openTracedReads(fake.nc) };
}

/** How many messages each server serves. */
async function counts(n2: FakeReplica): Promise<Record<string, number>> {
  const read: Record<string, number> = {};
  for await (const window of readReplicas(cluster(n2).reads, STREAM, SERVERS))
    for (const [server, messages] of servedIn(window)) read[server] = (read[server] ?? 0) + messages.length;
  return read;
}

test.each([
  { what: 'whole', n2: whole(...all), wrong: 0 },
  { what: 'without a message of its second window', n2: damaged(whole(...all), 300), wrong: 1 },
  { what: 'without a block', n2: damaged(whole(...all), ...Array.from({ length: 50 }, (_, i) => 250 + i)), wrong: 50 },
  { what: 'behind', n2: whole(...all.slice(0, LAST - 5)), wrong: 5 },
])('of a replica that is $what, each message is counted once', async ({ n2, wrong }) => {
  expect(await counts(n2)).toEqual({ n1: LAST, n2: LAST - wrong, n3: LAST });
  const compared = await compareReplicas(cluster(n2).reads, STREAM, SERVERS, LAST);
  expect(compared).toEqual({ messages: LAST, wrong: new Map(wrong === 0 ? [] : [['n2', wrong]]) });
});

test('other content is counted against the server that most others contradict', async () => {
  const n2 = whole(...all.map((one) => (one.seq === 400 ? { ...one, text: 'other' } : one)));
  expect((await compareReplicas(cluster(n2).reads, STREAM, SERVERS, LAST)).wrong).toEqual(new Map([['n2', 1]]));
});

test('a server that does not answer is named, and the others are read to their end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { fake, reads } = cluster(whole(...all));
  fake.silent.add('n2');
  const silent: string[] = [];
  let read = 0;
  const reading = (async () => {
    for await (const window of readReplicas(reads, STREAM, SERVERS)) {
      silent.push(...window.silent);
      read += servedIn(window).get('n3')?.length ?? 0;
    }
  })();
  for (let i = 0; i < 20; i++) await vi.advanceTimersByTimeAsync(3_000);
  await reading;
  expect({ silent, read }).toEqual({ silent: ['n2'], read: LAST });
});
