/** The ports of a session host on NATS JetStream, and the administration of NATS. */
export {
  awaitPermanentClose,
  type ConnectNatsOptions,
  connectNats,
  logConnection,
  NatsRefusedError,
  NatsUnavailableError,
  NotPermittedError,
  removeAnnouncement,
  retryWhileUnavailable,
  type StoredMessage,
  StreamsMissingError,
  withConnection,
} from '@coxswain/bus';
export * from './auth/mod.ts';
export { connectionTo, type NamedBus } from './bus-address.ts';
export { type CheckedStream, type CheckPace, checkReplicas, type ReplicaFinding } from './check-replicas.ts';
export { checkStoreQuorum } from './check-store-quorum.ts';
export { StreamsGoneError } from './command-consumers.ts';
export { readReplicas, servedIn } from './compare-replicas.ts';
export { type ConnectionParts, connectionUrl, NatsUrlInvalidError, parseConnectionUrl } from './connection-url.ts';
export { endOnce, endTogether } from './end-once.ts';
export {
  type EnsuredStreams,
  ensureBuckets,
  ensureStreams,
  StreamConfigMismatchError,
} from './ensure-streams.ts';
export { listHosts } from './list-hosts.ts';
export { listSessions } from './list-sessions.ts';
export { createNatsActiveSessions } from './nats-active-sessions.ts';
export { createNatsHooks, type NatsHooks } from './nats-hooks.ts';
export { createNatsHostChannel } from './nats-host-channel.ts';
export { createNatsInbox } from './nats-inbox.ts';
export { createNatsJournal } from './nats-journal.ts';
export { createNatsPersonas, type NatsPersonas } from './nats-personas.ts';
export { createNatsPublisher, publishApprovalNotice } from './nats-publisher.ts';
export { createNatsPurge, openNatsDeletion } from './nats-purge.ts';
export { serveQueries } from './nats-queries.ts';
export { createNatsRememberedRules, keepRememberedRule, listRememberedRules } from './nats-remembered-rules.ts';
export { answerRetention, createNatsRetention } from './nats-retention.ts';
export { createNatsSender } from './nats-sender.ts';
export { createNatsSessionIndex } from './nats-session-index.ts';
export { createNatsBlobs, createNatsSnapshots } from './nats-storage.ts';
export { createNatsTenantUsage } from './nats-tenant-usage.ts';
export { createNatsTimers, timersTimeMs } from './nats-timers.ts';
export { createNatsTools, type NatsTools } from './nats-tools.ts';
export { notifyHost } from './notify-host.ts';
export { RewriteStoppedError, type RewrittenStream, rewriteStream } from './rewrite-stream.ts';
export { HookIdTakenError, type ServedHooks, type ServeHooksOptions, serveHooks } from './serve-hooks.ts';
export { serveLargeFields } from './serve-large-fields.ts';
export { type ListedInstance, type ListedService, listServed } from './served/list-served.ts';
export { type ListedPersona, listServedPersonas, pausePersona, resumePersona } from './served/pauses.ts';
export { type StalledConsumers, watchForStalledConsumers } from './stalled-consumers.ts';
export { LIMITED, type Limited, type StreamSettings } from './stream-configs.ts';
export { streamFill } from './stream-fill.ts';
export { NoHostRespondsError, serveTenantKeys } from './tenant-keys.ts';
export { openTracedReads, type TracedReads, type TracedWindow } from './traced-reads.ts';
