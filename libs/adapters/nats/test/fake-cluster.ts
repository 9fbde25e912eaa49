import {
  type Msg,
  MsgHdrsImpl,
  type NatsConnection,
  PermissionViolationError,
  type Subscription,
} from '@nats-io/nats-core';

/** A message of a replica. */
export interface Kept {
  readonly seq: number;
  readonly subject: string;
  /** Default: the sequence as text. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The replica of one server: what its index reports, and what of that it serves. */
export interface FakeReplica {
  readonly index: readonly Kept[];
  readonly served: readonly Kept[];
}

/** A replica that serves all that its index reports. */
export const whole = (...index: readonly Kept[]): FakeReplica => ({ index, served: index });

/** A replica that steps over some of what its index reports. */
export const damaged = ({ index, served }: FakeReplica, ...seqs: readonly number[]): FakeReplica => ({
  index,
  served: served.filter(({ seq }) => !seqs.includes(seq)),
});

/** A stream of a fake cluster. */
export interface FakeStream {
  readonly leader: string;
  readonly replicas: Readonly<Record<string, FakeReplica>>;
  /** It elects a leader: it answers no request but direct gets. */
  readonly isLeaderless?: boolean;
}

type Query = { seq?: number; next_by_subj?: string; last_by_subj?: string; batch?: number; subjects_filter?: string };

/**
 * Streams with replicas in memory, behind a connection: the content of the leader's index, and what each server serves.
 */
export class FakeCluster {
  readonly nc: NatsConnection;
  /** Requests in the order in which they were sent, by their subjects. */
  readonly asked: string[] = [];
  /** The server that direct gets go to. Default: the servers of a stream in turn. */
  answering: string | null = null;
  /** Servers that answer no direct get. */
  readonly silent = new Set<string>();
  /** Called with each request to the API, and answered once it resolves. */
  held: (subject: string) => Promise<void> = async () => undefined;
  /** The subject that the server refuses of a request, given its own and that of its trace. Default: none. */
  refused: (subject: string, traceTo: string | undefined) => string | undefined = () => undefined;
  readonly #streams: Readonly<Record<string, FakeStream>>;
  readonly #listeners = new Map<string, (error: Error | null, message: Msg) => void>();
  #turn = 0;

  constructor(streams: Readonly<Record<string, FakeStream>>) {
    this.#streams = streams;
    let refuse: (status: object) => void = () => undefined;
    const refusal = new Promise<object>((resolve) => {
      refuse = resolve;
    });
    this.nc = {
      isClosed: () => false,
      closed: () => new Promise(() => undefined),
      status: () =>
        (async function* () {
          yield await refusal;
        })(),
      subscribe: (subject: string, { callback }: { callback: (error: Error | null, message: Msg) => void }) => {
        const prefix = subject.replace(/(\*\.)*\*$/, '');
        this.#listeners.set(prefix, callback);
        const unsubscribe = () => void this.#listeners.delete(prefix);
        return { isClosed: () => false, unsubscribe } as unknown as Subscription;
      },
      publish: (subject: string, body: Uint8Array | string, to: { reply: string; headers?: MsgHdrsImpl }) => {
        this.asked.push(subject);
        const refused = this.refused(subject, to.headers?.get('Nats-Trace-Dest'));
        if (refused !== undefined) {
          refuse({ type: 'error', error: new PermissionViolationError('no', 'publish', refused) });
          return;
        }
        const text = Buffer.from(body as string).toString();
        void this.held(subject).then(() => this.#take(subject, text === '' ? {} : JSON.parse(text), to));
      },
    } as unknown as NatsConnection;
  }

  #deliver(subject: string, text: string, headers?: MsgHdrsImpl): void {
    const [, callback] = [...this.#listeners].find(([prefix]) => subject.startsWith(prefix)) ?? [];
    const message = { subject, data: Buffer.from(text), headers, string: () => text, json: () => JSON.parse(text) };
    callback?.(null, message as unknown as Msg);
  }

  #take(subject: string, query: Query, { reply, headers }: { reply: string; headers?: MsgHdrsImpl }): void {
    const [, verb = '', name = '', last] = /^\$JS\.API\.(.*?)\.((?:COX|KV|OBJ)_\w+)(?:\.(.*))?$/.exec(subject) ?? [];
    const stream = this.#streams[name];
    if (stream && verb === 'DIRECT.GET')
      this.#direct(stream, query, { last, reply, traceTo: headers?.get('Nats-Trace-Dest') });
    else this.#deliver(reply, JSON.stringify(this.#answer(verb, stream, query)));
  }

  #answer(verb: string, stream: FakeStream | undefined, query: Query): object {
    if (!stream) return errorOf(404, 10_059, 'stream not found');
    if (stream.isLeaderless) return errorOf(503, 10_008, 'JetStream system temporarily unavailable');
    const leader = stream.replicas[stream.leader] as FakeReplica;
    if (verb !== 'STREAM.MSG.GET') return this.#info(stream, leader, query.subjects_filter);
    const found = findOne(leader.served, query);
    if (!found) return errorOf(404, 10_037, 'no message found');
    const hdrs = Buffer.from(headersOf(found.headers ?? {}).encode()).toString('base64');
    const data = Buffer.from(textOf(found)).toString('base64');
    return { message: { seq: found.seq, subject: found.subject, time: TIME, hdrs, data } };
  }

  #info({ leader, replicas }: FakeStream, { index }: FakeReplica, filter: string | undefined): object {
    const counts: Record<string, number> = {};
    for (const { subject } of index)
      if (filter !== undefined && isMatch(subject, filter)) counts[subject] = (counts[subject] ?? 0) + 1;
    const others = Object.keys(replicas).filter((server) => server !== leader);
    return {
      created: TIME,
      total: Object.keys(counts).length,
      config: { allow_direct: true },
      state: {
        first_seq: index[0]?.seq ?? 1,
        last_seq: index.at(-1)?.seq ?? 0,
        messages: index.length,
        subjects: counts,
      },
      cluster: { leader, replicas: others.map((server) => ({ name: server, current: true })) },
    };
  }

  #direct({ replicas }: FakeStream, query: Query, { last, reply, traceTo }: DirectGet): void {
    const servers = Object.keys(replicas);
    const server = this.answering ?? (servers[this.#turn++ % servers.length] as string);
    if (this.silent.has(server)) return;
    if (traceTo) this.#deliver(traceTo, JSON.stringify({ server: { name: server }, hops: 0 }));
    const { index, served } = replicas[server] as FakeReplica;
    const { seq = 1, next_by_subj: next = '>', batch } = query;
    const isWanted = (one: Kept) => one.seq >= seq && isMatch(one.subject, next);
    let pending = index.filter(isWanted).length;
    const single = findOne(served, last === undefined ? query : { last_by_subj: last });
    const sent = batch === undefined ? (single ? [single] : []) : served.filter(isWanted).slice(0, batch);
    for (const one of sent) {
      const headers = headersOf(one.headers ?? {});
      headers.append('Nats-Subject', one.subject);
      headers.append('Nats-Sequence', String(one.seq));
      headers.append('Nats-Time-Stamp', TIME);
      headers.append('Nats-Num-Pending', String(--pending));
      this.#deliver(reply, textOf(one), headers);
    }
    if (sent.length === 0) this.#deliver(reply, '', new MsgHdrsImpl(404, ''));
    else if (batch !== undefined) this.#deliver(reply, '', new MsgHdrsImpl(204, ''));
  }
}

interface DirectGet {
  /** The subject whose newest message is asked for. */
  readonly last: string | undefined;
  readonly reply: string;
  readonly traceTo: string | undefined;
}

function errorOf(code: number, err_code: number, description: string): object {
  return { error: { code, err_code, description } };
}

const TIME = '2026-01-01T00:00:00Z';
const textOf = ({ seq, text = String(seq) }: Kept) => text;

function headersOf(given: Readonly<Record<string, string>>): MsgHdrsImpl {
  const headers = new MsgHdrsImpl();
  for (const [key, value] of Object.entries(given)) headers.append(key, value);
  return headers;
}

function findOne(
  served: readonly Kept[],
  { seq = 1, next_by_subj: next, last_by_subj: last }: Query,
): Kept | undefined {
  if (last !== undefined) return served.findLast(({ subject }) => subject === last);
  return served.find((one) => one.seq >= seq && isMatch(one.subject, next ?? '>'));
}

function isMatch(subject: string, filter: string): boolean {
  const [tokens, wanted] = [subject.split('.'), filter.split('.')];
  if (wanted.at(-1) === '>') return wanted.slice(0, -1).every((token, i) => token === '*' || token === tokens[i]);
  return tokens.length === wanted.length && wanted.every((token, i) => token === '*' || token === tokens[i]);
}
