/** Logs of services: JSON lines without secrets. */
export { DescriptorLog } from './descriptor-log.ts';
export { LOG_FILE_MAX_BYTES } from './rotating-file.ts';
export { createServiceLog, type LogSink, type LogTarget, openLogFile, secretMask } from './service-log.ts';
