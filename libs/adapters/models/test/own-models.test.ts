/** Models of the program that runs the host. */
import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { type HostRules, type Message, OPEN_RULES } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createModels, ModelUnusableError } from '../src/mod.ts';
import { ask } from './request.ts';

const MESSAGES: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }];

/** A language model as the AI SDK's packages make them, which keeps what it is asked. */
function recording(asked: LanguageModelV3CallOptions[]): LanguageModelV3 {
  const tokens = { noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const parts: LanguageModelV3StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'an answer' },
    { type: 'text-end', id: '0' },
    {
      type: 'finish',
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { inputTokens: { total: 3, ...tokens }, outputTokens: { total: 2, text: 2, reasoning: undefined } },
    },
  ];
  return {
    specificationVersion: 'v3',
    provider: 'acme.chat',
    modelId: 'large',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('only streams are asked for')),
    async doStream(options) {
      asked.push(options);
      const stream = new ReadableStream<LanguageModelV3StreamPart>({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      });
      return { stream };
    },
  };
}

test('a language model of the AI SDK, and a script, answer under their names', async () => {
  const asked: LanguageModelV3CallOptions[] = [];
  const models = createModels({
    env: {},
    own: { 'acme/large': recording(asked), 'acme/script': { turns: [{ text: 'Hi.' }] } },
  });
  expect(await models.check({ name: 'acme/large' })).toBeNull();
  expect((await ask(models, { name: 'acme/large' }, MESSAGES)).result).toMatchObject({
    status: 'complete',
    message: { content: [{ type: 'text', text: 'an answer' }] },
    usage: { input_tokens: 3, output_tokens: 2 },
  });
  expect(asked).toHaveLength(1);
  expect((await ask(models, { name: 'acme/script' }, MESSAGES)).result).toMatchObject({
    message: { content: [{ type: 'text', text: 'Hi.' }] },
  });
});

test('a wrong script is refused when it is checked, and the policy holds for own names', async () => {
  const models = createModels({
    env: {},
    own: { 'acme/wrong': { turns: [{ txt: 'Hi.' } as never] }, 'acme/large': recording([]) },
  });
  expect(await models.check({ name: 'acme/wrong' })).toMatchObject({ code: 'script_invalid' });
  const rules: HostRules = { ...OPEN_RULES, models: ['openai/*'] };
  expect(await models.check({ name: 'acme/large' }, rules)).toMatchObject({ code: 'not_allowed_by_policy' });
  expect(() => models.resolve({ name: 'acme/large' }, rules)).toThrow(ModelUnusableError);
});
