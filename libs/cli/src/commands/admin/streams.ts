/** `cox admin streams`. */
import {
  connectionTo,
  connectNats,
  type EnsuredStreams,
  ensureStreams,
  LIMITED,
  type Limited,
  NatsRefusedError,
  RewriteStoppedError,
  type RewrittenStream,
  rewriteStream,
} from '@coxswain/adapter-nats';
import { JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import { type BusAddress, findBus } from '../../connection/mod.ts';
import { awaitReplicas, connectTo, countReplicas, type Replicas, replicasText } from '../../instance/mod.ts';
import { CliError, type CommandRun, EXIT, usageError } from '../../line/mod.ts';
import { stopSignal } from '../../service/mod.ts';
import { askYes, isInteractive, standardStreams } from '../../terminal/mod.ts';

const COUNT = JOURNAL_STREAMS.length + Object.keys(STREAMS).length;

/** The wait for new replicas, in ms. Replication continues after it. */
const REPLICATION_TIMEOUT_MS = 120_000;

/** JetStream error codes for too few servers: in a cluster, and on a single server. */
const TOO_FEW_SERVERS: ReadonlySet<number> = new Set([10_005, 10_074]);

/**
 * Creates the streams of a bus and checks them. If users have their own keys, this needs the admin's key. Exits 1 if
 * the user declines to remove replicas.
 */
export const run: CommandRun = async ({ flags, env }) => {
  const replicas = flags.whole('replicas', { min: 1, max: 5 });
  const maxBytes = limitsIn(flags.text('max-bytes'));
  const { address, stateDir } = await findBus(flags, env);
  if (!address) {
    const message = `no instance of cox up runs in ${stateDir}; name a bus with --nats or NATS_URL: hosts of this machine create their own streams`;
    throw new CliError(EXIT.error, 'not_running', message);
  }
  const client = await connectTo(address, env);
  try {
    const before = countReplicas((await client.busInfo()).streams);
    if (replicas !== undefined && replicas < before.most && !flags.on('yes') && !(await mayLower(before, replicas))) {
      standardStreams.err('nothing was changed\n');
      return EXIT.error;
    }
    const { uncompressed, atRisk } = await ensure(address, replicas, maxBytes);
    if (uncompressed.length > 0) standardStreams.err(`compression is switched off: ${uncompressed.join(', ')}\n`);
    // Without a request for more replicas there is nothing to wait for: an offline server may stay offline.
    const isMore = replicas !== undefined && before.streams > 0 && replicas > before.fewest;
    const report = (text: string) => standardStreams.err(`${text}\n`);
    const after = await awaitReplicas(client, isMore ? REPLICATION_TIMEOUT_MS : 0, report);
    if (isMore && after.complete < after.streams) throw incomplete(after);
    const rewritten = flags.on('rewrite') ? await rewrite(address, atRisk, report) : [];
    if (rewritten.length < atRisk.length) report(riskText(atRisk));
    const line = {
      type: 'streams',
      count: COUNT,
      copies: after.most,
      copies_before: before.most,
      uncompressed,
      at_risk: rewritten.length < atRisk.length ? atRisk : [],
      rewritten: rewritten.map(({ stream }) => stream),
    };
    if (flags.on('json')) standardStreams.out(`${JSON.stringify(line)}\n`);
    else
      standardStreams.out(
        `${COUNT} streams and buckets exist with the required configuration; ${replicaChangeText(before, after)}\n`,
      );
    return EXIT.ok;
  } finally {
    await client.close();
  }
};

/** Asks before replicas are removed: they preserve the data of a server that fails. */
async function mayLower(before: Replicas, replicas: number): Promise<boolean> {
  const change = `${replicasText(before)} -> ${replicas}`;
  if (!isInteractive())
    throw usageError(`--replicas ${replicas} removes replicas (${change}), and no terminal can confirm it: give --yes`);
  return askYes(`Remove replicas of every stream (${change})?`);
}

/**
 * Rewrites streams one after another. @throws CliError `rewrite_stopped` if one cannot be rewritten; the earlier ones
 * stay rewritten.
 */
async function rewrite(
  address: BusAddress,
  streams: readonly string[],
  report: (text: string) => void,
): Promise<RewrittenStream[]> {
  const interrupted = new AbortController();
  const stop = stopSignal();
  void stop.promise.then(() => interrupted.abort());
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-streams' });
  try {
    const rewritten: RewrittenStream[] = [];
    for (const stream of streams) rewritten.push(await rewriteStream(nc, stream, report, interrupted.signal));
    return rewritten;
  } catch (error) {
    if (!(error instanceof RewriteStoppedError)) throw error;
    throw new CliError(EXIT.error, 'rewrite_stopped', error.message);
  } finally {
    stop.release();
    await nc.close();
  }
}

function riskText(streams: readonly string[]): string {
  return (
    `blocks of ${streams.join(', ')} were written with compression, which servers use until they restart: kill -9 of a ` +
    'server can destroy its replica of them; cox admin streams --rewrite rewrites them, replica by replica, while ' +
    'sessions run'
  );
}

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Parses `commands=512MiB,journals=40GiB` into bytes. @throws CliError naming the invalid part. */
function limitsIn(text: string | undefined): Partial<Record<Limited, number>> {
  const limits: Partial<Record<Limited, number>> = {};
  for (const part of text?.split(',') ?? []) {
    const [, name = '', number = '', unit = ''] = /^\s*([a-z]+)=(\d{1,9})([KMGT]iB)?\s*$/.exec(part) ?? [];
    const limited = LIMITED.find((one) => one === name);
    if (!limited)
      throw usageError(
        `--max-bytes takes NAME=SIZE with one of ${LIMITED.join(', ')}, as journals=40GiB, not "${part}"`,
      );
    limits[limited] = Number(number) * (UNITS[unit] ?? 1);
  }
  return limits;
}

async function ensure(
  address: BusAddress,
  replicas: number | undefined,
  maxBytes: Partial<Record<Limited, number>>,
): Promise<EnsuredStreams> {
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-streams' });
  try {
    return await ensureStreams(nc, { replicas, uncompress: true, maxBytes });
  } catch (error) {
    if (!(error instanceof NatsRefusedError) || !TOO_FEW_SERVERS.has(error.errCode)) throw error;
    const message =
      `too_few_servers: ${replicas} replicas of every stream need as many servers in the cluster, with free space for them ` +
      `(${error.message})`;
    throw new CliError(EXIT.error, 'too_few_servers', message);
  } finally {
    await nc.close();
  }
}

function incomplete({ complete, streams, most }: Replicas): CliError {
  const message =
    `copies_incomplete: ${streams - complete} of ${streams} streams do not have their ${most} replicas yet; ` +
    'replication continues while all servers run: cox doctor prints its progress';
  return new CliError(EXIT.error, 'copies_incomplete', message);
}

/** The change of the number of replicas, such as `copies of each: 1 -> 3`. */
function replicaChangeText(before: Replicas, after: Replicas): string {
  const isSame = before.streams === 0 || (before.fewest === after.fewest && before.most === after.most);
  const lacking = after.streams - after.complete;
  const behind = lacking === 0 ? '' : `; ${lacking} not up to date: check with cox doctor`;
  return `copies of each: ${isSame ? '' : `${replicasText(before)} -> `}${replicasText(after)}${behind}`;
}
