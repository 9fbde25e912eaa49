/**
 * The kinds of served work: how the adapter asks for each, how the client and the CLI serve it, and in what its traits
 * differ.
 */
import { type Asking, type FindWork, type Instances, offerData, type ServedAddress } from '@coxswain/bus';
import { answerHook, toolWork } from '@coxswain/handlers';
import type { HookReply, ServedPersonas } from '@coxswain/ports';
import { BOUNDS, type HookRegistration, type ModelAnswered, SessionId, sessionRef, TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from '../../libs/adapters/nats/src/served/hook-questions.ts';
import { createPersonaSteps } from '../../libs/adapters/nats/src/served/persona-steps.ts';
import { askOf, outcomeOf } from '../../libs/adapters/nats/src/served/tool-outcomes.ts';
import { checkTool } from '../../libs/client/src/define-tool.ts';
import { personaStep, stepWire } from '../../libs/client/src/persona-step.ts';
import { StepLine } from '../../libs/client/src/step-line.ts';
import { type Ending, endingOfCall, endingOfQuestion, PERSONA_VERSION, runServedStep } from './served-endings.ts';

/** The host's end of the bus. */
export interface AskingSide {
  readonly nc: NatsConnection;
  readonly asking: Asking;
  readonly presence: Instances;
  /** The time limit of hooks, milliseconds. */
  readonly hookTimeoutMs: number;
}

/** Sends one piece of work, and waits for its end. @param effect the id of the effect in the session. */
export type AskWork = (effect: string, signal: AbortSignal) => Promise<Ending>;

/** One kind of served work. */
export interface ServedKindCase {
  readonly title: string;
  readonly to: ServedAddress;
  /** Whether it may run again after its start. */
  readonly isRepeatable: boolean;
  /** Whether an instance starts it only at the order of the host. Other work starts when it arrives. */
  readonly isHeld: boolean;
  /** Whether an instance repeats the answer of ended work instead of running it again. */
  readonly keepsAnswers: boolean;
  /** Whether pieces of the answer are streamed: only one instance may answer, and the others are aborted. */
  readonly isStreamed: boolean;
  /** How often it may start. */
  readonly startsMax: number;
  /** Its end after the last of these starts has failed. */
  readonly exhausted: Ending['status'];
  /** Its end after a cancel. Nothing reads the answer of a hook after that. */
  readonly cancelled: Ending['status'];
  /** The members of its request that name the work at its address. */
  readonly member: { readonly tool?: string; readonly hook?: string };
  askWork(side: AskingSide): AskWork;
}

/** The tenant of all of them. */
export const tenant = TenantId.parse('default');
/** The session of all of them. */
export const ref = sessionRef(SessionId.parse('s1'), tenant);
/** The idempotency key of an effect of the session. */
export const keyOf = (effect: string) => `default.s1.${effect}`;

const PERSONA: ServedAddress = { kind: 'personas', tenant, name: 'clerk', version: PERSONA_VERSION };
const TOOL = 'stock';
const HOOK = 'h';

const askTool =
  (to: ServedAddress, isIdempotent: boolean, member?: string): ServedKindCase['askWork'] =>
  ({ asking }) =>
  async (effect, signal) => {
    const call = {
      idempotencyKey: keyOf(effect),
      ref,
      callId: `c${effect}`,
      tool: TOOL,
      args: {},
      epoch: 1,
      isIdempotent,
      onProgress: () => undefined,
      onFeedback: () => undefined,
    };
    return endingOfCall(outcomeOf(await asking.ask(askOf(call, to, member), signal)));
  };

const askHook =
  (to: ServedAddress): ServedKindCase['askWork'] =>
  ({ nc, asking, hookTimeoutMs }) => {
    const questions = createHookQuestions(nc, asking, () => undefined);
    const registration = registrationOf(hookTimeoutMs);
    return async (effectId, signal) => {
      const request = {
        ref,
        effectId,
        registration,
        payload: {},
        transcript: () => [],
        onFeedback: () => undefined,
      };
      return endingOfQuestion(await questions.ask(to, request, signal));
    };
  };

const registrationOf = (timeout_ms: number) => ({ id: HOOK, point: 'PreToolUse', timeout_ms }) as HookRegistration;

const askStep: ServedKindCase['askWork'] = ({ nc, asking, presence }) => {
  const personas = {
    isServed: () => presence.isServed(PERSONA),
    pause: () => null,
    onChange: () => () => undefined,
    step: createPersonaSteps(
      asking,
      offerData(nc, () => undefined),
    ),
  } as Partial<ServedPersonas> as ServedPersonas;
  return (effectId, signal) => runServedStep(personas, PERSONA.name, { ref, effectId, system: '' }, signal);
};

/** The same for calls of tools and of the tools of personas. */
const CALL = {
  isHeld: true,
  keepsAnswers: true,
  isStreamed: false,
  exhausted: 'lost',
  cancelled: 'cancelled',
} as const;

/** The same for hooks of both services. */
const QUESTION = {
  isRepeatable: true,
  isHeld: false,
  keepsAnswers: false,
  isStreamed: false,
  startsMax: 4,
  exhausted: 'unavailable',
  cancelled: 'unavailable',
  member: { hook: HOOK },
} as const;

const policy: ServedAddress = { kind: 'hooks', tenant, name: 'policy' };
const tool: ServedAddress = { kind: 'tools', tenant, name: TOOL };
const again = { isRepeatable: true, startsMax: 4 };
const once = { isRepeatable: false, startsMax: 1 };
const ofPersona = { to: PERSONA, member: { tool: TOOL } };

/** All kinds of served work. */
export const SERVED_KINDS: readonly ServedKindCase[] = [
  { title: 'a call of an idempotent tool', to: tool, ...CALL, ...again, member: {}, askWork: askTool(tool, true) },
  { title: 'a call of a tool', to: tool, ...CALL, ...once, member: {}, askWork: askTool(tool, false) },
  {
    title: 'a step of a persona',
    to: PERSONA,
    isRepeatable: true,
    isHeld: false,
    keepsAnswers: true,
    isStreamed: true,
    startsMax: BOUNDS.stepTriesMax,
    exhausted: 'unavailable',
    cancelled: 'cancelled',
    member: {},
    askWork: askStep,
  },
  { title: 'a question to a hook service', to: policy, ...QUESTION, askWork: askHook(policy) },
  { title: 'a question to a hook of a persona', to: PERSONA, ...QUESTION, askWork: askHook(PERSONA) },
  {
    title: 'a call of an idempotent tool of a persona',
    ...ofPersona,
    ...CALL,
    ...again,
    askWork: askTool(PERSONA, true, TOOL),
  },
  { title: 'a call of a tool of a persona', ...ofPersona, ...CALL, ...once, askWork: askTool(PERSONA, false, TOOL) },
];

/** The work of one instance. @param run runs a piece of work; rejects when the signal aborts. */
export async function workOf(
  kind: ServedAddress['kind'],
  nc: NatsConnection,
  hookTimeoutMs: number,
  run: (signal: AbortSignal) => Promise<string>,
): Promise<FindWork> {
  const tool = await checkTool({
    name: TOOL,
    description: '',
    inputSchema: { type: 'object' },
    execute: (_args: unknown, { abortSignal }: { abortSignal: AbortSignal }) => run(abortSignal),
  });
  const stream = (_request: unknown, _onPart: unknown, signal: AbortSignal) =>
    run(signal).then(
      (text) => answerOf('complete', text),
      () => answerOf('cancelled', ''),
    );
  const models = { check: async () => null, resolve: () => ({ stream }) };
  const step = personaStep(PERSONA.name, stepWire(nc), models, new StepLine(16));
  const hook = {
    registrationAt: () => registrationOf(hookTimeoutMs),
    fetch: () => Promise.reject(new Error('these hooks read no messages')),
    answer: (_question: unknown, signal: AbortSignal): Promise<HookReply> =>
      run(signal).then(
        (text) => ({ status: 'returned', raw: { deny: text } }),
        () => ({ status: 'failed', code: 'hook_threw', message: 'aborted' }),
      ),
  };
  return (wanted) => {
    if (wanted.hook !== undefined) return (received) => answerHook(received, hook);
    return wanted.tool !== undefined || kind === 'tools' ? toolWork(tool, wanted) : toolWork(step, wanted, 'step');
  };
}

function answerOf(status: 'complete' | 'cancelled', text: string): ModelAnswered {
  return {
    status,
    message: { role: 'assistant', content: text === '' ? [] : [{ type: 'text', text }] },
    finishReason: status === 'complete' ? 'stop' : 'cancelled',
    usage: { input_tokens: 0, output_tokens: 0 },
    attempts: 1,
  };
}
