/** Sends the commands of requests to sessions. */
export { recordedForkPoint, rejectOtherStart, rejectReusedId } from './idempotency.ts';
export {
  abortOnDisconnectOrStop,
  handleCommand,
  idempotentIds,
  objectBody,
  rejectOtherFields,
  rejectUnknownFields,
  sendCounted,
  sendOptions,
  toStoredCommand,
} from './send-command.ts';
