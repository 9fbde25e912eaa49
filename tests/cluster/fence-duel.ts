/**
 * Two writers that both believe that every session is theirs append to the same journals of a cluster, as fast as they
 * are let, with nothing between them but the fence; meanwhile somebody breaks the leader. What each writer was told and
 * what stands in every replica at the end must tell one story.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSystemClock } from '@coxswain/adapter-memory';
import { connectNats, createNatsJournal, ensureStreams } from '@coxswain/adapter-nats';
import type { Journal } from '@coxswain/ports';
import { journalStreamOf, type SessionRef, sessionRef, subjects } from '@coxswain/protocol';
import { appendUntilKnown, type StoreResult } from '@coxswain/session';
import type { Cluster } from './cluster.ts';
import { replicaContents } from './replica-contents.ts';

/** What a writer was told of one of its appends. */
export interface Told {
  readonly id: string;
  readonly sessionId: string;
  /** The position that it was to follow. */
  readonly fence: number;
  readonly outcome: StoreResult['status'];
  /** The position that it was given, where it is stored. */
  readonly seq: number | null;
  /** Answers that were no answers, on the way. */
  readonly doubts: number;
}

/** A record as it stands in a replica. */
export interface Standing {
  readonly id: string;
  /** The position that its writer meant it to follow. */
  readonly fence: number;
  readonly seq: number;
}

/** Everything that is to be judged. */
export interface Duel {
  readonly told: readonly Told[];
  /** By session, as its stream's leader has it. */
  readonly journals: ReadonlyMap<string, readonly Standing[]>;
  /** The same as each node has it, by its name. */
  readonly replicas: ReadonlyMap<string, ReadonlyMap<string, readonly Standing[]>>;
}

/** What is done to the cluster while two writers write. Resolves when it is over. */
export type Strikes = (cluster: Cluster, streams: readonly string[]) => Promise<void>;

/** Lets two writers compete for so many sessions until the strikes are over. The cluster is whole again afterwards. */
export async function fightDuel(cluster: Cluster, sessions: number, strikes: Strikes): Promise<Duel> {
  const ids = Array.from({ length: sessions }, () => randomUUID().slice(0, 12));
  const refs = ids.map((id) => sessionRef(id));
  const connected = () => connectNats({ servers: cluster.servers, token: cluster.token ?? undefined });
  const connections = await Promise.all([connected(), connected()]);
  const [first] = connections;
  await ensureStreams(first as (typeof connections)[0], { replicas: 3 });
  const over = new AbortController();
  const told: Told[] = [];
  const writers = connections.flatMap((nc, writer) => {
    const journal = createNatsJournal(nc);
    return refs.map((ref) => write(journal, ref, `w${writer}`, told, over.signal));
  });
  try {
    await strikes(cluster, [...new Set(ids.map(journalStreamOf))]);
  } finally {
    over.abort();
    await cluster.restore();
    await Promise.all(writers);
    await Promise.all(connections.map((nc) => nc.close()));
  }
  return { told, journals: await readAll(cluster, refs), replicas: await readAllReplicas(cluster, refs) };
}

/** One writer at one session: appends where it believes the end to be, and where another was quicker, reads on from there. */
async function write(
  journal: Journal,
  ref: SessionRef,
  writer: string,
  told: Told[],
  over: AbortSignal,
): Promise<void> {
  const clock = createSystemClock();
  let fence = 0;
  for (let no = 1; !over.aborted; no++) {
    const id = `${writer}.${ref.sessionId}.${no}`;
    const bytes = new TextEncoder().encode(JSON.stringify({ attempt: id, fence }));
    const hash = createHash('sha256').update(bytes).digest('hex');
    let doubts = 0;
    const counted: Journal = {
      ...journal,
      append: async (...args) => {
        const result = await journal.append(...args);
        if (result.status === 'ambiguous') doubts += 1;
        return result;
      },
    };
    const result = await appendUntilKnown(counted, clock, ref, { bytes, hash }, fence, () => false);
    if (result.status === 'deleted') throw new Error(`nobody deletes here: ${result.message}`);
    const seq = result.status === 'stored' ? result.fence : null;
    told.push({ id, sessionId: ref.sessionId, fence, outcome: result.status, seq, doubts });
    fence = seq ?? (await endOf(journal, ref, fence));
    // Whoever has just won would win again and again: its next append is on its way first.
    await sleep(Math.random() * 4);
  }
}

/** As a host that loads a session: where its journal ends now, as far as anybody says. */
async function endOf(journal: Journal, ref: SessionRef, fence: number): Promise<number> {
  try {
    return (await journal.last(ref))?.fence ?? 0;
  } catch {
    // Nobody leads now: the next append is refused or settled like any other.
    return fence;
  }
}

function standing(bytes: Uint8Array, seq: number): Standing {
  const { attempt, fence } = JSON.parse(Buffer.from(bytes).toString()) as { attempt: string; fence: number };
  return { id: attempt, fence, seq };
}

async function readAll(cluster: Cluster, refs: readonly SessionRef[]): Promise<Duel['journals']> {
  const nc = await connectNats({ servers: cluster.servers, token: cluster.token ?? undefined });
  const journal = createNatsJournal(nc);
  const journals = new Map<string, Standing[]>();
  for (const ref of refs) {
    const all: Standing[] = [];
    for await (const { bytes, fence } of journal.read(ref)) all.push(standing(bytes, fence));
    journals.set(ref.sessionId, all);
  }
  await nc.close();
  return journals;
}

/** What the replica of each node serves: by its name, and by session. */
async function readAllReplicas(cluster: Cluster, refs: readonly SessionRef[]): Promise<Duel['replicas']> {
  const nc = await connectNats({ servers: cluster.servers, token: cluster.token ?? undefined });
  const servers = cluster.nodes.map(({ name }) => name);
  const replicas = new Map(
    servers.map((name) => [name, new Map(refs.map(({ sessionId }): [string, Standing[]] => [sessionId, []]))]),
  );
  const sessionOf = new Map(refs.map((ref) => [subjects.journal(ref), ref.sessionId]));
  for (const stream of new Set(refs.map(({ sessionId }) => journalStreamOf(sessionId))))
    for (const [name, messages] of await replicaContents(nc, stream, servers))
      for (const { subject, seq, data } of messages) {
        const session = sessionOf.get(subject);
        if (session !== undefined) replicas.get(name)?.get(session)?.push(standing(data, seq));
      }
  await nc.close();
  return replicas;
}

/**
 * Everything in a duel that cannot be, in sentences: a position that two records follow, an acknowledged append that is
 * not where it was said to be, one that was refused and stands all the same, a record that stands twice, replicas that
 * differ.
 */
export function judgeDuel({ told, journals, replicas }: Duel): string[] {
  const wrong: string[] = [];
  const outcomes = new Map(told.map((one) => [one.id, one]));
  for (const [sessionId, records] of journals) {
    const seen = new Set<string>();
    let before = 0;
    for (const { id, fence, seq } of records) {
      if (fence !== before) wrong.push(`${sessionId}: ${id} at ${seq} was to follow ${fence}, and follows ${before}`);
      if (seen.has(id)) wrong.push(`${sessionId}: ${id} stands twice`);
      seen.add(id);
      before = seq;
      const said = outcomes.get(id);
      if (said?.outcome === 'foreign') wrong.push(`${sessionId}: ${id} at ${seq} was told that another was first`);
      if (said?.outcome === 'stored' && said.seq !== seq)
        wrong.push(`${sessionId}: ${id} at ${seq} was told that it is at ${said.seq}`);
    }
    for (const said of told)
      if (said.sessionId === sessionId && said.outcome === 'stored' && !seen.has(said.id))
        wrong.push(`${sessionId}: ${said.id} was acknowledged at ${said.seq}, and is not there`);
    for (const [name, replica] of replicas)
      if (JSON.stringify(replica.get(sessionId)) !== JSON.stringify(records))
        wrong.push(`${sessionId}: ${name} has ${replica.get(sessionId)?.length} records, the leader ${records.length}`);
  }
  return wrong;
}
