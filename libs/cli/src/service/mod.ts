/** A service that runs in this process: its health, log, signals and gateway. */
export { consoleAddress, consoleFolder } from './console-folder.ts';
export {
  type GatewayAccess,
  gatewayFile,
  readGatewayFile,
  removeGatewayFile,
  writeGatewayFile,
} from './gateway-file.ts';
export { answerHealth, askHealth } from './health-socket.ts';
export { LogReader, logLineText } from './log-reader.ts';
export { metricsAddressOf, metricsLine, metricsMember } from './metrics-address.ts';
export {
  expectGatewayPort,
  gatewayLines,
  type OwnGatewayOptions,
  ownGatewayPort,
  startOwnGateway,
  startViewer,
} from './own-gateway.ts';
export { reserveForProtocol } from './protocol-streams.ts';
export { reportDisconnections } from './report-disconnections.ts';
export { logTarget, serveUntilStopped } from './serve-until-stopped.ts';
export { startOffersOf } from './start-offers.ts';
export { hangUp, stopSignal, untilAborted } from './stop-signal.ts';
export { threadsOf } from './threads.ts';
export { UP_LOG, upLog } from './up-log.ts';
export { watchUserCodeErrors } from './watch-user-code-errors.ts';
