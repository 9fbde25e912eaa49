/** Services' logs: JSON lines without secrets. */
export { createServiceLog, type LogTarget } from './service-log.ts';
