/** The hook service and the tool service, for programs that run them in their own process. */
export { type HooksService, type HooksServiceOptions, startHooksService } from './start-hooks-service.ts';
export { startToolService, ToolModuleError, type ToolService, type ToolServiceOptions } from './start-tool-service.ts';
