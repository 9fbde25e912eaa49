/** Runs handlers of hooks, requests to models, and calls of served tools. Needs the protocol only: the client and every adapter can use it. */
export { answerHook, type HookService, observedHook } from './answer-hook.ts';
export { type HandlerSurroundings, runHookHandler } from './run-hook-handler.ts';
export { runModelStep } from './run-model-step.ts';
export { type ServableTool, toolWork } from './run-tool.ts';
