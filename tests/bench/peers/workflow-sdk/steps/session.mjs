/** A session as a workflow of plain steps: instant models and tools, as long as those of the other systems. */
export async function session(id, turns) {
  'use workflow';
  for (let turn = 0; turn < turns; turn++) {
    const { toolCall } = await model(id, turn);
    await echo(toolCall.args);
  }
}

async function model(id, turn) {
  'use step';
  globalThis.modelAsked(id);
  return {
    role: 'assistant',
    text: 'y'.repeat(180),
    toolCall: { id: `${id}:${turn}`, name: 'echo', args: { turn } },
  };
}

async function echo({ turn }) {
  'use step';
  return { content: `result of turn ${turn}: ${'x'.repeat(180)}` };
}
