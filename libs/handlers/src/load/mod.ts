/** Loads user modules, and runs their code in this process. Needs Node. */
export { exportedTools, watchedTool } from './exported-tools.ts';
export { type Found, type FoundHandler, loadHandler, loadTool, readHandlerName } from './load-handler.ts';
export {
  bundleModule,
  HookModuleError,
  importBundle,
  type LoadedModule,
  loadModule,
  type ModuleBundle,
} from './load-module.ts';
export { runHandler, watchUnhandledFailures } from './unhandled-failures.ts';
