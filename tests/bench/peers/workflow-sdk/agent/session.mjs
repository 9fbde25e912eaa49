/** A session as an agent of the SDK: each answer of the model is a step, and each call of the tool. */
import { DurableAgent } from '@workflow/ai/agent';
import { jsonSchema } from 'ai';
import { getWritable } from 'workflow';

export async function session(id, turns) {
  'use workflow';
  const agent = new DurableAgent({
    model: async () => {
      'use step';
      return instantModel(id);
    },
    tools: {
      echo: {
        description: 'Returns its argument.',
        inputSchema: jsonSchema(
          { type: 'object', properties: { turn: { type: 'number' } } },
          { validate: (value) => ({ success: true, value }) },
        ),
        execute: echo,
      },
    },
  });
  await agent.stream({ messages: [{ role: 'user', content: 'start' }], writable: getWritable(), maxSteps: turns });
}

async function echo({ turn }) {
  'use step';
  return { content: `result of turn ${turn}: ${'x'.repeat(180)}` };
}

function instantModel(id) {
  return {
    specificationVersion: 'v3',
    provider: 'instant',
    modelId: 'echo',
    supportedUrls: {},
    async doStream({ prompt }) {
      globalThis.modelAsked(id);
      const turn = prompt.filter(({ role }) => role === 'assistant').length;
      const parts = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 'text' },
        { type: 'text-delta', id: 'text', delta: 'y'.repeat(180) },
        { type: 'text-end', id: 'text' },
        { type: 'tool-call', toolCallId: `${id}:${turn}`, toolName: 'echo', input: JSON.stringify({ turn }) },
        {
          type: 'finish',
          finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
          usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
}
