/** Test kit for personas, tools and hooks, for any test runner: in memory, or on a separate bus. */

export { NatsServerNotFoundError } from '@coxswain/adapter-embedded-server';
export type { HookSource as SceneHooks } from '@coxswain/adapter-hooks';
export type { EventPattern, JournalEvent } from './expect-events.ts';
export { expectReplay } from './expect-replay.ts';
export { given, type Scene, type SceneSetup } from './given.ts';
export type { CallSeen, Journal } from './journal.ts';
export {
  approve,
  atSeam,
  type CallDecision,
  cancel,
  cancelCall,
  command,
  deny,
  during,
  duringAnswer,
  followup,
  type Move,
  prompt,
  remind,
  resume,
  signal,
  steer,
  suspend,
  type WhichCall,
  wait,
} from './moves.ts';
export type { ScenePersona } from './scene-persona.ts';
export type { SceneTools, ToolFunction } from './scene-tools.ts';
export { calls, type Script, type ScriptedAnswer, says } from './scripted-answers.ts';
export { type RunOptions, type StartBusOptions, startBus, type TestBus } from './start-bus.ts';
export { ExpectationError, SceneError } from './testing-errors.ts';
