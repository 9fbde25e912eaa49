/**
 * Coxswain within a program: `startCoxswain`, `run`, and what they are used with. Everything of the client is in `@coxswain/client`,
 * whose most used definitions are here, so that one import serves.
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
  type ServedToolDefinition,
  Session,
  type UiEvent,
} from '@coxswain/client';
export type { CoxswainOptions } from './embed/options.ts';
export { type RunSettings, run } from './embed/run.ts';
export { Coxswain, startCoxswain } from './embed/start-coxswain.ts';
