/** A session as an agent of the AI SDK: each answer of the model is a step, and each call of the tool. */
import { WorkflowAgent } from '@ai-sdk/workflow';
import { isStepCount, jsonSchema } from 'ai';

export async function session(id, turns) {
  'use workflow';
  const agent = new WorkflowAgent({
    model: new InstantModel(id),
    tools: {
      echo: {
        description: 'Returns its argument.',
        inputSchema: jsonSchema({ type: 'object', properties: { turn: { type: 'number' } } }),
        execute: echo,
      },
    },
    stopWhen: isStepCount(turns),
  });
  await agent.stream({ messages: [{ role: 'user', content: 'start' }] });
}

async function echo({ turn }) {
  'use step';
  return { content: `result of turn ${turn}: ${'x'.repeat(180)}` };
}

/** The agent passes its model to each step, so the SDK stores it as these symbols say. */
class InstantModel {
  specificationVersion = 'v4';
  provider = 'instant';
  modelId = 'echo';
  supportedUrls = {};

  constructor(session) {
    this.session = session;
  }

  static [Symbol.for('workflow-serialize')]({ session }) {
    return session;
  }

  static [Symbol.for('workflow-deserialize')](session) {
    return new InstantModel(session);
  }

  async doStream({ prompt }) {
    globalThis.modelAsked(this.session);
    const turn = prompt.filter(({ role }) => role === 'assistant').length;
    const parts = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: 'text' },
      { type: 'text-delta', id: 'text', delta: 'y'.repeat(180) },
      { type: 'text-end', id: 'text' },
      { type: 'tool-call', toolCallId: `${this.session}:${turn}`, toolName: 'echo', input: JSON.stringify({ turn }) },
      {
        type: 'finish',
        finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
      },
    ];
    return { stream: ReadableStream.from(parts) };
  }
}
