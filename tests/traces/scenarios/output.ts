/** Runs whose final answer has a schema. */
import { ask, type Scenario, say } from '../scenario.ts';

const REPORT = {
  type: 'object',
  properties: { hauled: { type: 'integer' }, torn: { type: 'boolean' } },
  required: ['hauled', 'torn'],
  additionalProperties: false,
};

/** See the top of the file. */
export const OUTPUT: readonly Scenario[] = [
  {
    name: 'output-repaired',
    shows: 'an answer does not fit the output schema, a repair turn is steered, and the next answer fits',
    turns: [
      ask(['look', { at: 'the net' }]),
      say('Twelve, and the net is whole.'),
      say('{"hauled": 12}', { delay_ms: 50 }),
      say('```json\n{"hauled": 12, "torn": false}\n```'),
    ],
    tools: ['look'],
    async play(stage) {
      await stage.host();
      await stage.start({ output: REPORT, limits: { output_repairs: 1 } });
      await stage.send('steer', { body: 'Count again.' });
      await stage.wait(100);
    },
  },
  {
    name: 'output-invalid',
    shows: 'no answer fits the output schema of the persona: the run fails once its repairs are used up',
    turns: [say('Twelve.'), say('{"hauled": "twelve", "torn": false}'), say('{"hauled": 12.5}')],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', output: REPORT } });
      await stage.wait(100);
    },
  },
];
