/** Finds, starts and opens an instance, and reads its sessions. */
export { withAdminPorts } from './admin-ports.ts';
export { type Connection, listCommand, removeCommand } from './announced.ts';
export { type EmbeddedInstance, type EmbeddedOptions, startEmbedded } from './embedded.ts';
export { gatewayOf, isOwnServer, keepAccess, keptAccessFile, readKeptAccess, startOnPort } from './kept-access.ts';
export { leaveRunning } from './leave-running.ts';
export { connectTo, type OpenBus, reachedAt, refuseElsewhere, withBus, withBusOnce } from './open-bus.ts';
export { approveCommand, pastedCommand } from './pasted-command.ts';
export { approvalsBelow, listPendingApprovals } from './pending-approvals.ts';
export { Reopenings } from './reopenings.ts';
export { findSession, matchPrefix } from './resolve-session.ts';
export { sessionStatus } from './session-status.ts';
export { awaitReplicas, countReplicas, type Replicas, replicasText } from './stream-replicas.ts';
export { untilPrepared } from './until-prepared.ts';
export { whenFree } from './when-free.ts';
