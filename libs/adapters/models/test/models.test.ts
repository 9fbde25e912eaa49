import { describe, expect, test } from 'vitest';
import { createModels, ModelUnusableError } from '../src/mod.ts';

const REMOTE = 'https://llm.example.com/v1';
const LOCAL = 'http://127.0.0.1:4010';

describe('check', () => {
  test('an unknown provider gets the list of those there are', async () => {
    expect(await createModels({ env: {} }).check({ name: 'opneai/gpt' })).toEqual({
      code: 'provider_unknown',
      message:
        'unknown provider "opneai"; known providers: anthropic, gemini, google, openai, openai-chat, openai-compatible, replay, scripted',
      retryable: false,
    });
    expect((await createModels({ env: {} }).check({ name: 'constructor/x' }))?.code).toBe('provider_unknown');
  });

  test.each([
    ['openai/m', 'OPENAI_API_KEY'],
    ['openai-chat/m', 'OPENAI_API_KEY'],
    ['anthropic/m', 'ANTHROPIC_API_KEY'],
    ['google/m', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    ['gemini/m', 'GEMINI_API_KEY'],
  ])('%s needs %s, but for a server on this machine', async (name, variable) => {
    const without = createModels({ env: { [variable]: ' ' } });
    for (const settings of [{ name }, { name, base_url: REMOTE }]) {
      const failure = await without.check(settings);
      expect(failure).toMatchObject({ code: 'model_key_missing', message: expect.stringContaining(variable) });
    }
    for (const base_url of [LOCAL, 'http://localhost:1', 'http://[::1]:1', 'http://api.localhost/v1']) {
      expect(await without.check({ name, base_url })).toBeNull();
    }
    expect((await without.check({ name, base_url: 'http://127.0.0.1.example.com' }))?.code).toBe('model_key_missing');
    expect(await createModels({ env: { [variable]: 'k' } }).check({ name })).toBeNull();
  });

  test('a key that cannot be sent is named, not shown', async () => {
    const failure = await createModels({ env: { OPENAI_API_KEY: 'sk-a b' } }).check({ name: 'openai/m' });
    expect(failure).toMatchObject({ code: 'model_key_missing', message: expect.stringContaining('OPENAI_API_KEY') });
    expect(failure?.message).not.toContain('sk-a');
  });

  test('openai-compatible needs an address and no key', async () => {
    const name = 'openai-compatible/m';
    expect(await createModels({ env: {} }).check({ name })).toMatchObject({
      code: 'provision_failed',
      message: expect.stringContaining('OPENAI_COMPATIBLE_BASE_URL'),
    });
    expect(await createModels({ env: {} }).check({ name, base_url: REMOTE })).toBeNull();
    expect(await createModels({ env: { OPENAI_COMPATIBLE_BASE_URL: REMOTE } }).check({ name })).toBeNull();
    for (const OPENAI_COMPATIBLE_BASE_URL of ['llm.example.com', 'ftp://llm.example.com']) {
      expect((await createModels({ env: { OPENAI_COMPATIBLE_BASE_URL } }).check({ name }))?.code).toBe(
        'provision_failed',
      );
    }
  });
});

test('resolve throws exactly where check has a failure', () => {
  const models = createModels({ env: {} });
  expect(() => models.resolve({ name: 'openai/m' })).toThrow(ModelUnusableError);
  expect(() => models.resolve({ name: 'nobody/m' })).toThrow(ModelUnusableError);
  expect(() => models.resolve({ name: 'openai/m', base_url: LOCAL })).not.toThrow();
});
