/**
 * Creates the streams and verifies their configuration. A server silently ignores members that it does not know, and
 * another program may have created the stream earlier.
 */
import {
  type ApiError,
  answerOf,
  failureOf,
  isStreamNameInUse,
  isStreamNotFound,
  isTenantsKey,
  NatsUnavailableError,
  NotPermittedError,
  nullIfNoStream,
  StreamsMissingError,
  streamInfo,
  type Wire,
  wireOf,
} from '@coxswain/bus';
import { minimumServerVersion, NatsServerTooOldError, serverVersionAtLeast } from '@coxswain/ports/discovery';
import { COMPRESSED_BLOCKS, REWRITE_REPLICAS, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { limitedBy, limitMembers, type StreamSettings, type StreamSpec, streamSpecs } from './stream-configs.ts';

/** The configuration of a stream or consumer differs from the required one. */
export class StreamConfigMismatchError extends Error {
  override readonly name = 'StreamConfigMismatchError';
  readonly code = 'stream_config_mismatch';
  /** The path of the member, for example `COX_COMMANDS.subject_transform.dest`. */
  readonly member: string;
  constructor(member: string, wanted: unknown, found: unknown, serverVersion: string) {
    super(
      `nats-server ${serverVersion} has ${member} = ${JSON.stringify(found) ?? 'nothing'}, ` +
        `but must be ${JSON.stringify(wanted)}`,
    );
    this.member = member;
  }
}

/** The result of {@link ensureStreams}: names of streams, sorted. */
export interface EnsuredStreams {
  /** Streams whose compression this call switched off. */
  readonly uncompressed: readonly string[];
  /** Streams with several replicas that hold compressed blocks: a server killed with SIGKILL may damage its replica. */
  readonly atRisk: readonly string[];
}

/**
 * Creates missing streams, buckets and object stores, applies the given settings to existing ones, and verifies each
 * configuration member by member. If all are as required, it takes one request per stream and needs no permission to
 * create streams. A stream that compresses its blocks is reported, not rejected: hosts must still run on the streams of
 * earlier versions.
 * @throws NatsServerTooOldError, StreamConfigMismatchError naming the member, StreamsMissingError,
 *   NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function ensureStreams(nc: NatsConnection, settings: StreamSettings = {}): Promise<EnsuredStreams> {
  const version = serverVersionOf(nc);
  if (!serverVersionAtLeast(version, minimumServerVersion)) {
    throw new NatsServerTooOldError(nc.getServer(), version, minimumServerVersion);
  }
  const wire = wireOf(nc);
  const [timers, ...others] = streamSpecs(settings);
  // Only the operator changes replicas and compression, not each host that starts.
  const kept = [
    ...(settings.replicas === undefined ? ['num_replicas'] : []),
    ...(settings.uncompress === true ? [] : ['compression']),
  ];
  const uncompressed: string[] = [];
  const atRisk: string[] = [];
  const ensure = async (spec: StreamSpec) => {
    const { before, config } = await ensureStream(wire, spec, version, (before) => [
      ...kept,
      ...keptLimits(spec.name, before, settings),
    ]);
    if (isCompressed(before) && !isCompressed(config)) uncompressed.push(spec.name);
    if (holdsCompressedBlocks(config) && Number(config.num_replicas) > 1) atRisk.push(spec.name);
  };
  // The command stream sources the timer stream, so the timer stream must exist first.
  if (timers) await ensure(timers);
  await Promise.all(others.map(ensure));
  return { uncompressed: uncompressed.sort(), atRisk: atRisk.sort() };
}

/**
 * The limit members that a stream keeps. A host that starts (without `maxBytes`) keeps all limits. An operator changes
 * the limits that `maxBytes` names, and sets the default where a stream has no limit.
 */
function keptLimits(stream: string, before: StreamConfig, { maxBytes }: StreamSettings): readonly string[] {
  const limited = limitedBy(stream);
  if (limited === null || (maxBytes && maxBytes[limited] !== undefined)) return [];
  const isLimited = Number(before.max_bytes ?? -1) > 0;
  return maxBytes && !isLimited ? [] : limitMembers(stream);
}

/** Whether a stream compresses its full blocks. */
function isCompressed({ compression }: StreamConfig): boolean {
  return compression !== undefined && compression !== 'none';
}

/** Whether a stream compresses its blocks, or did so earlier and was not rewritten since. */
function holdsCompressedBlocks(config: StreamConfig): boolean {
  return isCompressed(config) || config.metadata?.[COMPRESSED_BLOCKS] !== undefined;
}

/**
 * Creates the named buckets if they are missing, and verifies existing ones, except for replicas, compression and limits:
 * those belong to {@link ensureStreams}. A tenant's key has no permission to create or inspect buckets. Then only the
 * server's version is checked, and a missing bucket shows at the first read.
 * @throws as {@link ensureStreams}.
 */
export async function ensureBuckets(nc: NatsConnection, names: readonly string[]): Promise<void> {
  const version = serverVersionOf(nc);
  if (!serverVersionAtLeast(version, minimumServerVersion)) {
    throw new NatsServerTooOldError(nc.getServer(), version, minimumServerVersion);
  }
  if (isTenantsKey(nc)) return;
  const wanted = streamSpecs().filter(({ name }) => names.some((bucket) => name === `KV_${bucket}`));
  await Promise.all(
    wanted.map((spec) =>
      ensureStream(wireOf(nc), spec, version, () => ['num_replicas', 'compression', ...limitMembers(spec.name)]),
    ),
  );
}

/**
 * Creates the stream of the session index if it is missing, with as many replicas as the command stream has.
 * @returns when it was created, ISO 8601.
 * @throws as {@link ensureStreams}; StreamNotFoundError if the command stream is missing, too.
 */
export async function ensureIndexStream(nc: NatsConnection): Promise<string> {
  const existing = await nullIfNoStream(streamInfo(nc, STREAMS.sessions));
  if (existing) return existing.created;
  const { config } = await streamInfo(nc, STREAMS.commands);
  const specs = streamSpecs({ replicas: config.num_replicas });
  const spec = specs.find(({ name }) => name === STREAMS.sessions) as StreamSpec;
  await ensureStream(wireOf(nc), spec, serverVersionOf(nc), () => ['num_replicas', 'compression']);
  return (await streamInfo(nc, STREAMS.sessions)).created;
}

/** The version of the connected server; `unknown` before the server has reported it. */
export function serverVersionOf(nc: NatsConnection): string {
  return nc.info?.version ?? 'unknown';
}

/** A stream's configuration as the server reports it. */
type StreamConfig = Readonly<Record<string, unknown>> & { readonly metadata?: Readonly<Record<string, string>> };

interface StreamAnswer {
  readonly config?: StreamConfig;
}

/**
 * Creates or verifies one stream.
 * @param keptOf the members that an existing stream keeps unchanged. A new stream gets all members of its
 *   specification.
 * @returns the configuration as it was found, and as it is now; the same if nothing was changed.
 */
async function ensureStream(
  wire: Wire,
  spec: StreamSpec,
  version: string,
  keptOf: (before: StreamConfig) => readonly string[],
): Promise<{ readonly before: StreamConfig; readonly config: StreamConfig }> {
  let found = await ask(wire, 'INFO', spec.name);
  if (found.error && isStreamNotFound(found.error)) {
    // If another client created the same stream meanwhile, CREATE returns that stream.
    found = await create(wire, spec);
    if (found.error && isStreamNameInUse(found.error)) found = await ask(wire, 'INFO', spec.name);
  }
  if (found.error) throw refused(spec, found.error);
  const before = found.config ?? {};
  const kept = keptOf(before);
  const wanted = Object.fromEntries(Object.entries(spec).filter(([member]) => !kept.includes(member)));
  const { [REWRITE_REPLICAS]: restored, ...others } = before.metadata ?? {};
  // Metadata of an interrupted rewrite: the number of replicas to restore. An explicitly requested number replaces it.
  const isStale = restored !== undefined && 'num_replicas' in wanted;
  const difference = firstDifference(wanted, before, spec.name);
  if (!difference && !isStale) return { before, config: before };
  const changeable = changedInPlace(spec.name);
  if (difference && !changeable.some((one) => difference.member === `${spec.name}.${one}`))
    throw mismatch(difference, version);
  const changed = Object.fromEntries(changeable.filter((one) => one in wanted).map((one) => [one, wanted[one]]));
  const marked = isCompressed(before) && 'compression' in wanted ? { [COMPRESSED_BLOCKS]: 'true' } : {};
  const metadata = { ...(isStale ? others : before.metadata), ...marked };
  const updated = await update(wire, spec.name, { ...before, ...changed, metadata });
  if (updated === null)
    throw difference ? mismatch(difference, version) : new NotPermittedError(`$JS.API.STREAM.UPDATE.${spec.name}`);
  if (updated.error) throw refused(spec, updated.error);
  const config = updated.config ?? {};
  const still = firstDifference(wanted, config, spec.name);
  if (still) throw mismatch(still, version);
  return { before, config };
}

/**
 * The members that are updated in place on an existing stream. Earlier versions allowed rollups in buckets, and no
 * direct gets on the timer stream.
 */
function changedInPlace(name: string): readonly string[] {
  const common = ['num_replicas', 'compression', ...limitMembers(name)];
  if (name.startsWith('KV_')) return [...common, 'allow_rollup_hdrs'];
  return name === STREAMS.timers ? [...common, 'allow_direct'] : common;
}

/** Updates a stream. @returns null if this user has no permission to do so. */
async function update(wire: Wire, name: string, config: object): Promise<Awaited<ReturnType<typeof ask>> | null> {
  try {
    return await ask(wire, 'UPDATE', name, config);
  } catch (error) {
    if (error instanceof NotPermittedError) return null;
    throw error;
  }
}

/**
 * Creates a stream. A cluster may lose a request during a leader election, so it is retried: creating the same stream
 * again is idempotent.
 */
async function create(wire: Wire, spec: StreamSpec): ReturnType<typeof ask> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(wire, 'CREATE', spec.name, spec);
    } catch (error) {
      if (error instanceof NotPermittedError) throw new StreamsMissingError(spec.name);
      if (!(error instanceof NatsUnavailableError) || attempt === CREATE_ATTEMPTS) throw error;
    }
  }
}

const CREATE_ATTEMPTS = 3;

async function ask(
  wire: Wire,
  what: 'CREATE' | 'INFO' | 'UPDATE',
  name: string,
  config?: object,
): Promise<StreamAnswer & { readonly error?: ApiError }> {
  const payload = config === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(config));
  return answerOf<StreamAnswer>(await wire.request(`$JS.API.STREAM.${what}.${name}`, payload));
}

function refused(spec: StreamSpec, error: ApiError): Error {
  return failureOf(`making ${spec.name}`, error);
}

function mismatch({ member, wanted, found }: Difference, version: string): StreamConfigMismatchError {
  return new StreamConfigMismatchError(member, wanted, found, version);
}

const CHANGED_LAST: ReadonlySet<string> = new Set([
  'num_replicas',
  'compression',
  'max_bytes',
  'max_msgs_per_subject',
  'discard',
  'discard_new_per_subject',
]);

/** A member whose value differs from the requested one. */
export interface Difference {
  /** The path of the member, starting with the given name. */
  readonly member: string;
  readonly wanted: unknown;
  readonly found: unknown;
}

/**
 * Compares a requested configuration with an existing one. Members that were not requested are ignored: the server
 * fills them in. Members that can be changed in place are compared last, so that other differences are reported first.
 */
export function firstDifference(wanted: object, found: object, name: string): Difference | null {
  const members = Object.entries(wanted).sort(([a], [b]) => Number(CHANGED_LAST.has(a)) - Number(CHANGED_LAST.has(b)));
  for (const [key, value] of members) {
    const difference = compare(value, (found as Record<string, unknown>)[key], `${name}.${key}`);
    if (difference) return difference;
  }
  return null;
}

function compare(wanted: unknown, found: unknown, member: string): Difference | null {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) return { member, wanted, found };
    for (const [index, item] of wanted.entries()) {
      const difference = compare(item, found[index], `${member}[${index}]`);
      if (difference) return difference;
    }
    return null;
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof found !== 'object' || found === null) return { member, wanted, found };
    return firstDifference(wanted, found, member);
  }
  // The server omits members that are false or zero.
  const off = wanted === false || wanted === 0;
  // It reports -1 for no limit.
  const isOff = found === undefined || (wanted === 0 && found === -1);
  return wanted === found || (off && isOff) ? null : { member, wanted, found };
}
