/**
 * Finds the bus for a program on this machine: environment variables, contexts, and the server of a state directory.
 * Also the oldest server version. `cox`, `connect()` and the services share this implementation. It imports from Node, as `regular-file` does.
 */
export { type Connection, type ConnectionFile, connectionFilePath, readConnection } from './connection-file.ts';
export {
  type Context,
  type Contexts,
  contextsFile,
  findContext,
  type NamedContext,
  readContexts,
} from './contexts.ts';
export { ConnectionFileInvalidError, StateDirUnusableError } from './discovery-errors.ts';
export { type BusAddress, type BusChoice, type FoundBus, findBus } from './find-bus.ts';
export { makeFolder, systemTrouble } from './make-folder.ts';
export { type PrivateJson, type PrivateJsonReading, readPrivateJson } from './private-json.ts';
export { isAlive, markProcess, type ProcessMark } from './process-mark.ts';
export { replaceFile } from './replace-file.ts';
export { readSeedFile, type SeedCredentials, SeedFileError } from './seed-file.ts';
export { minimumServerVersion, NatsServerTooOldError, serverVersionAtLeast } from './server-version.ts';
export { callerFolder, defaultStateDir } from './state-dir.ts';
