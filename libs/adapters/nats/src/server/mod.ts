/** The embedded nats-server: find it, start it, and connect to a running one. */
export {
  type Connection,
  ConnectionFileInvalidError,
  isAlive,
  markProcess,
  type ProcessMark,
  readConnection,
  StateDirUnusableError,
} from '@coxswain/ports/discovery';
export { type ConnectionParts, connectionUrl, parseConnectionUrl } from './connection-url.ts';
export type { DebianSource } from './fetch-debian-package.ts';
export type { ReleaseSource } from './fetch-release.ts';
export { type FetchReport, type ReportStream, reportTo } from './fetch-report.ts';
export {
  type FindServerOptions,
  type FoundServer,
  findServer,
  type ServerSource,
  serverSourceName,
} from './find-server.ts';
export { makeFolder, systemTrouble } from './make-folder.ts';
export {
  FetchChecksumMismatchError,
  FetchFailedError,
  FetchSettingInvalidError,
  type FindAttempt,
  NatsServerNotFoundError,
  NatsServerStartFailedError,
  NatsServerStopFailedError,
  NatsServerTooOldError,
  NatsServerUnusableError,
  NatsUrlInvalidError,
  PortInUseError,
  ServerOptionInvalidError,
  type StateDirHolder,
  StateDirInUseError,
} from './server-errors.ts';
export { minimumServerVersion, serverVersionAtLeast } from './server-version.ts';
export { type RunningServer, type ServerExit, type StartServerOptions, startServer } from './start-server.ts';
export { type StateDirOwner, stateDirOwner } from './state-dir-claim.ts';
