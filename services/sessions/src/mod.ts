/** The sessions service, for programs that run it inside their own process. */
export { type SessionsService, type SessionsServiceOptions, startSessionsService } from './start-sessions-service.ts';
