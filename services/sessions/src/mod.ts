/** The sessions service, for programs that run it inside their own process. */
export type { LogTarget } from './service-log.ts';
export { type SessionsService, type SessionsServiceOptions, startSessionsService } from './start-sessions-service.ts';
