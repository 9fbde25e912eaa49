/** A tool in its own process: `cox serve tools ./tools.ts`. */
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
  // A repetition does no harm: after the death of its worker, the call runs again.
  idempotent: true,
  execute: ({ text }) => `${String(text).split(/\s+/).filter(Boolean).length} words`,
});
