// A tool. coxswain.yaml runs it in the session host; `npx cox serve tools tools/count-words.mjs` runs it in its own process.
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
  // A repetition does no harm: after the death of its process, the call runs again.
  idempotent: true,
  execute: ({ text }) => `${String(text).split(/\s+/).filter(Boolean).length} words`,
});
