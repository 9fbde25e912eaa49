/** Structured output in a session: what the model receives, what is checked, and what the journal states. */
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { testBed } from './test-bed.ts';

const SCHEMA = {
  type: 'object',
  properties: { total: { type: 'number' } },
  required: ['total'],
};

test('the model receives the schema, and its answer is checked and stated as a value', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('a', 'read')), say('Done.'), say('```json\n{"total": 2}\n```')];
  await bed.host();
  await bed.start({ persona: { name: 'mate', prompt: 'Add it up.', output: SCHEMA } });
  expect((await bed.lines()).filter((line) => /output|agent_end/.test(line))).toEqual([
    'output_rejected repairs 0/2',
    'message_injected output:2 direct at output',
    'agent_end end_turn',
  ]);
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({ output: { total: 2 } });
  const [first, , third] = bed.models.requests;
  expect(first).toMatchObject({ outputSchema: SCHEMA });
  expect(first?.system).toMatch(/^Add it up\.\n\n# Output\n[\s\S]*"required":\["total"\]/);
  // The question for a repair comes behind the answer that it is about.
  expect(third?.messages.slice(-2).map(({ role }) => role)).toEqual(['assistant', 'user']);
});

test('the schema of the start replaces the one of the persona, and the smaller number of repairs holds', async () => {
  const bed = testBed();
  bed.models.answers = [say('{"total": "two"}')];
  await bed.host();
  await bed.start({
    persona: { name: 'mate', output: { type: 'string' }, limits: { output_repairs: 4 } },
    output: SCHEMA,
    limits: { output_repairs: 1 },
  });
  expect((await bed.eventsOf('persona_changed'))[0]?.provision.output).toEqual({ schema: SCHEMA, repairs: 1 });
  expect((await bed.eventsOf('agent_end'))[0]).toMatchObject({
    stop_reason: 'error',
    turns: 2,
    error: { code: 'output_invalid', message: expect.stringContaining('total: must be number') },
  });
});

test('a schema that cannot be compiled fails the run before the model is asked', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({ output: { uniqueItems: 'yes' } });
  expect((await bed.eventsOf('agent_end'))[0]?.error).toMatchObject({ code: 'output_schema_invalid' });
  expect(bed.models.requests).toEqual([]);
});

test('a session without a schema has no trace of it in requests and records', async () => {
  const bed = testBed();
  bed.models.answers = [say('{"total": 2}')];
  await bed.host();
  await bed.start();
  expect(bed.models.requests[0]).not.toHaveProperty('outputSchema');
  expect(JSON.stringify(await bed.records())).not.toContain('output"');
});
