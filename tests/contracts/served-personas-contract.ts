import type { ModelPart, ModelRequest, Models, PersonaStep, ServedPersonas } from '@coxswain/ports';
import { Persona, type SessionRef, TenantId } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { freshSession } from './fresh-session.ts';

/** An instance that a test has begun. */
export interface ContractInstance {
  /** Ends it in order. */
  stop(): Promise<void> | void;
}

/** A set of served personas, and what serves them. */
export interface PersonasUnderTest {
  readonly personas: ServedPersonas;
  serve(definition: Persona & { readonly version: string }, models: Models): Promise<ContractInstance>;
}

const TENANT = TenantId.parse('default');
const USAGE = { input_tokens: 1, output_tokens: 1 };
let served = 0;

/** A persona that nobody else serves. */
export const fresh = (version = 'v1') => ({
  ...Persona.parse({ name: `persona-${process.pid}-${++served}`, prompt: 'Go.', model: 'fake/model' }),
  version,
});
/** Its first step, in a session of its own. */
export const stepOf = (definition: { name: string; version: string }, more: Partial<PersonaStep> = {}): PersonaStep => {
  const ref: SessionRef = freshSession();
  const request: ModelRequest = {
    idempotencyKey: `${ref.tenant}.${ref.sessionId}.3-0`,
    sessionId: ref.sessionId,
    turn: 1,
    model: { name: 'fake/model' },
    system: 'You work.',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }],
    tools: [],
  };
  const { name: persona, version } = definition;
  return {
    ref,
    epoch: 1,
    firstRequestEpoch: 1,
    attempt: 0,
    persona,
    version,
    request,
    onTaken: () => undefined,
    ...more,
  };
};

/** What personas that are served elsewhere promise. */
export function servedPersonasContract(name: string, make: () => PersonasUnderTest): void {
  const never = new AbortController().signal;

  describe(`served personas in ${name}`, () => {
    test('are found by name, with the version that was announced last', async () => {
      const { personas, serve } = make();
      const definition = fresh();
      expect(personas.find(TENANT, definition.name)).toBeNull();
      const first = await serve(definition, answering('x'));
      await eventually('it is known', () => personas.isServed(TENANT, definition.name, 'v1'));
      expect(personas.find(TENANT, definition.name)).toMatchObject({ version: 'v1', definition: { prompt: 'Go.' } });
      expect(personas.names(TENANT)).toContain(definition.name);
      const second = await serve({ ...definition, version: 'v2' }, answering('y'));
      await eventually('v2 counts', () => personas.find(TENANT, definition.name)?.version === 'v2');
      await eventually('v2 is served', () => personas.isServed(TENANT, definition.name, 'v2'));
      // Its first beat may have come before it was known who it is.
      await eventually('v1 is served still', () => personas.isServed(TENANT, definition.name, 'v1'));
      await first.stop();
      await eventually('v1 is served no more', () => !personas.isServed(TENANT, definition.name, 'v1'));
      await second.stop();
    });

    test('answer a step with the request as it was, their parts in order, and say who has taken it', async () => {
      const { personas, serve } = make();
      const definition = fresh();
      const asked: ModelRequest[] = [];
      const instance = await serve(
        definition,
        answering('one two three', (request) => asked.push(request)),
      );
      await eventually('it is served', () => personas.isServed(TENANT, definition.name, 'v1'));
      const parts: ModelPart[] = [];
      const taken: string[] = [];
      const long = 'y'.repeat(300_000);
      const step = stepOf(definition, { onTaken: (by) => taken.push(by) });
      const request = { ...step.request, system: long };
      const end = await personas.step({ ...step, request }, (part) => parts.push(part), never);
      expect(end).toMatchObject({ status: 'ended', result: { status: 'complete', finishReason: 'stop', attempts: 1 } });
      expect(parts).toEqual(['one ', 'two ', 'three'].map((text) => ({ type: 'text', text })));
      expect(asked[0]).toMatchObject({ system: long, messages: request.messages, sessionId: step.ref.sessionId });
      expect(taken).toHaveLength(1);
      await instance.stop();
    });

    test('say that nobody has taken a step of a version that nobody serves', async () => {
      const { personas, serve } = make();
      const definition = fresh();
      const instance = await serve(definition, answering('x'));
      await eventually('it is served', () => personas.isServed(TENANT, definition.name, 'v1'));
      const step = stepOf({ name: definition.name, version: 'v7' });
      expect(await personas.step(step, () => undefined, never)).toEqual({ status: 'unserved' });
      await instance.stop();
    });

    test('tell the model to stop when the step is told to', async () => {
      const { personas, serve } = make();
      const definition = fresh();
      const told = { aborted: false };
      const models = stalled(told);
      const instance = await serve(definition, models);
      await eventually('it is served', () => personas.isServed(TENANT, definition.name, 'v1'));
      const stop = new AbortController();
      const step = stepOf(definition, { onTaken: () => stop.abort('enough') });
      const end = await personas.step(step, () => undefined, stop.signal);
      expect(end.status === 'ended' ? end.result.status : 'cancelled').toBe('cancelled');
      await eventually('the model is told', () => told.aborted);
      await instance.stop();
    });
  });
}

/** A model that says this, word by word. */
export function answering(text: string, asked: (request: ModelRequest) => void = () => undefined): Models {
  return {
    check: async () => null,
    resolve: () => ({
      async stream(request, onPart) {
        asked(request);
        for (const piece of text.match(/\S+ ?/g) ?? []) onPart({ type: 'text', text: piece });
        return {
          status: 'complete',
          message: { role: 'assistant', content: [{ type: 'text', text }] },
          finishReason: 'stop',
          usage: USAGE,
          attempts: 1,
        };
      },
    }),
  };
}

/** A model that says nothing until it is told to stop. */
function stalled(told: { aborted: boolean }): Models {
  return {
    check: async () => null,
    resolve: () => ({
      stream: (_request, _onPart, signal) =>
        new Promise((resolve) => {
          const end = () => {
            told.aborted = true;
            const message = { role: 'assistant' as const, content: [], partial: true as const };
            resolve({ status: 'cancelled', message, finishReason: 'cancelled', usage: USAGE, attempts: 1 });
          };
          if (signal.aborted) end();
          else signal.addEventListener('abort', end, { once: true });
        }),
    }),
  };
}
