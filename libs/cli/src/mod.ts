/**
 * Coxswain within a program: `startCoxswain`, `run`, and related definitions. `@coxswain/client` has all definitions of
 * the client. The most used ones are also exported here, so that one import is enough.
 */
export { createHookRegistry } from '@coxswain/adapter-hooks';
export {
  Approval,
  allow,
  ask,
  Client,
  CoxswainError,
  connect,
  defineHooks,
  definePersona,
  defineTool,
  deny,
  type HookDefinitions,
  InvalidOptionError,
  type PersonaDefinition,
  type RunOptions,
  type RunResult,
  remind,
  rewrite,
  Session,
  startJob,
  type Tool,
  type UiEvent,
} from '@coxswain/client';
export type { CoxswainOptions } from './embed/options.ts';
export { type RunSettings, run } from './embed/run.ts';
export { Coxswain, startCoxswain } from './embed/start-coxswain.ts';
