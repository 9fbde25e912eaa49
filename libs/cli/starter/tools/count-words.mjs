// A tool in a process of its own: npx cox serve tools tools/count-words.mjs, or serveTool() in a program.
import { defineTool } from '@coxswain/client';

export default defineTool({
  name: 'count_words',
  description: 'How many words a text has.',
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
    additionalProperties: false,
  },
  // Counting again does no harm: a call whose worker died is made once more.
  idempotent: true,
  execute: ({ text }) => `${String(text).split(/\s+/).filter(Boolean).length} words`,
});
