/** The hook service, for programs that run it inside their own process. */
export { type HooksService, type HooksServiceOptions, startHooksService } from './start-hooks-service.ts';
