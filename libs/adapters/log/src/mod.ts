/** Services' logs: JSON lines without secrets. */
export { createServiceLog, type LogTarget, secretMask } from './service-log.ts';
