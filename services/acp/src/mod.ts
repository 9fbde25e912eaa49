/** Coxswain as an ACP agent, for programs that run it in their own process. */
export type { OpenBus } from './current-bus.ts';
export { type AcpService, type AcpServiceOptions, startAcpService } from './start-acp-service.ts';
export type { StartSettings } from './start-session.ts';
