/** The embedded nats-server: finds, fetches, starts and supervises it. */
export type { DebianSource } from './find/fetch-debian-package.ts';
export type { ReleaseSource } from './find/fetch-release.ts';
export { type FetchReport, type ReportStream, reportTo } from './find/fetch-report.ts';
export {
  type FindServerOptions,
  type FoundServer,
  findServer,
  type ServerSource,
  serverSourceName,
} from './find/find-server.ts';
export {
  FetchChecksumMismatchError,
  FetchFailedError,
  FetchSettingInvalidError,
  type FindAttempt,
  NatsServerNotFoundError,
  NatsServerStartFailedError,
  NatsServerStopFailedError,
  NatsServerUnusableError,
  PortInUseError,
  ServerOptionInvalidError,
  type StateDirHolder,
  StateDirInUseError,
} from './server-errors.ts';
export { type RunningServer, type ServerExit, type StartServerOptions, startServer } from './start/start-server.ts';
export { type StateDirOwner, stateDirOwner } from './start/state-dir-claim.ts';
