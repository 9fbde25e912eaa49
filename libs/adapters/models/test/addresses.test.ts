/** Where requests go, and what they carry. */
import { type JsonObject, type ToolDefinition, userText } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createModels } from '../src/mod.ts';
import { type RawServer, rawServer } from './raw-server.ts';
import { ask, TOOLS } from './request.ts';

let server: RawServer;
let seen: { url: string | undefined; headers: NodeJS.Dict<string | string[]> }[];

beforeEach(async () => {
  seen = [];
  server = await rawServer((response, _, { url, headers }) => {
    seen.push({ url, headers });
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"not here"}}');
  });
});
afterEach(() => server.close());

const KEYS = {
  OPENAI_API_KEY: 'key-openai',
  OPENAI_COMPATIBLE_API_KEY: 'key-compatible',
  ANTHROPIC_API_KEY: 'key-anthropic',
  GEMINI_API_KEY: 'key-google',
};

test.each([
  ['openai/m', '/v1/responses', 'authorization', 'Bearer key-openai'],
  ['openai-chat/m', '/v1/chat/completions', 'authorization', 'Bearer key-openai'],
  ['openai-compatible/a/b:free', '/chat/completions', 'authorization', 'Bearer key-compatible'],
  ['anthropic/m', '/v1/messages', 'x-api-key', 'key-anthropic'],
  ['google/m', '/v1beta/models/m:streamGenerateContent?alt=sse', 'x-goog-api-key', 'key-google'],
  ['gemini/m', '/v1beta/models/m:streamGenerateContent?alt=sse', 'x-goog-api-key', 'key-google'],
])('%s asks %s', async (name, url, header, value) => {
  const models = createModels({ env: KEYS });
  await ask(models, { name, base_url: server.url }, [userText('go')]);
  await ask(models, { name, base_url: `${server.url}/proxy/` }, [userText('go')]);
  expect(seen[0]?.url).toBe(url);
  expect(seen[0]?.headers[header]).toBe(value);
  expect(seen[1]?.url).toBe(url.replace(/^\/v1(beta)?\/|^\//, '/proxy/'));
});

test('slashes at the end of an address are dropped in linear time', async () => {
  const models = createModels({ env: {} });
  await ask(models, { name: 'openai-compatible/m', base_url: `${server.url}/a///` }, [userText('go')]);
  expect(seen[0]?.url).toBe('/a/chat/completions');
  // Quadratic work over this address would take minutes.
  const base_url = `${server.url}/${'/'.repeat(400_000)}x`;
  expect(await models.check({ name: 'openai-compatible/m', base_url })).toBeNull();
});

test('without a key a compatible server is sent none', async () => {
  await ask(createModels({ env: {} }), { name: 'openai-compatible/m', base_url: server.url }, [userText('go')]);
  expect(seen[0]?.headers.authorization).toBeUndefined();
});

test('an address may come from the environment; the model’s own goes first', async () => {
  const env = { OPENAI_BASE_URL: `${server.url}/env`, OPENAI_API_KEY: 'k' };
  await ask(createModels({ env }), { name: 'openai-chat/m' }, [userText('go')]);
  await ask(createModels({ env }), { name: 'openai-chat/m', base_url: `${server.url}/own` }, [userText('go')]);
  expect(seen.map(({ url }) => url)).toEqual(['/env/chat/completions', '/own/chat/completions']);
});

test('settings and the provider’s own options go along; OpenAI is asked to store nothing unless told otherwise', async () => {
  const settings = { name: 'openai/m', base_url: server.url, temperature: 0.2, max_output_tokens: 99 };
  const models = createModels({ env: {} });
  await ask(models, settings, [userText('go')]);
  await ask(models, { ...settings, provider_options: { openai: { store: true, user: 'u1' } } }, [userText('go')]);
  expect(server.bodies).toMatchObject([
    { temperature: 0.2, max_output_tokens: 99, store: false },
    { store: true, user: 'u1' },
  ]);
});

test('an output schema is the format of the answer where the provider takes any schema of an object', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } };
  const models = createModels({ env: {} });
  const asked = async (name: string, outputSchema: JsonObject, tools: ToolDefinition[] = []) => {
    await ask(models, { name, base_url: server.url }, [userText('go')], { outputSchema, tools });
    return server.bodies.at(-1);
  };
  const strict = false;
  expect(await asked('openai/m', schema, TOOLS)).toMatchObject({
    text: { format: { type: 'json_schema', strict, schema } },
  });
  expect(await asked('openai-chat/m', schema)).toMatchObject({
    response_format: { type: 'json_schema', json_schema: { strict, schema } },
  });
  expect(await asked('google/m', schema)).toMatchObject({
    generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'object' } },
  });
  // Google refuses a format next to tools, and OpenAI one that is not an object.
  expect(JSON.stringify(await asked('google/m', schema, TOOLS))).not.toContain('responseMimeType');
  expect(await asked('openai/m', { type: 'array' })).not.toHaveProperty('text.format');
  expect(await asked('openai-compatible/m', schema)).not.toHaveProperty('response_format');
  expect(await asked('anthropic/m', schema)).not.toHaveProperty('output_config');
});
