/** Bounds of what a persona carries: its skills, its steps, its limits, what it says of approvals; and of who serves it. */
import { createMemoryPersonas } from '@coxswain/adapter-memory';
import { BOUNDS, Persona, TenantId } from '@coxswain/protocol';
import { checkOutput } from '@coxswain/protocol/check-output';
import { FakeModels, say } from '../fake-model.ts';
import { testBed } from '../test-bed.ts';
import { type BoundRows, filling, from, least, list, most } from './row.ts';

const persona = (more: object) => (Persona.safeParse({ name: 'mate', ...more }).success ? 'ok' : 'refused');
const answer = (text: string) => ('value' in checkOutput({}, text) ? 'ok' : 'refused');
type Misfit = { readonly problems: readonly string[] };
const skill = (name: string, more: object = {}) => ({ name, description: `How to ${name}.`, body: '', ...more });

/** A session of a persona that an instance has served, and that goes on for an hour with each step. */
async function served() {
  const bed = testBed();
  const personas = createMemoryPersonas();
  const models = new FakeModels(bed.time.clock());
  models.answers = [say('done', { delayMs: 3_600_000 })];
  const mate = { ...Persona.parse({ name: 'mate', model: 'fake/model' }), version: 'v1' };
  const serve = () => personas.serve(TenantId.parse('default'), mate, models);
  const instance = serve();
  await bed.host({}, { served: personas });
  await bed.start({ persona: 'mate' });
  const comesTo = async (open: string) => String((await bed.eventsOf('agent_end'))[0]?.error?.code ?? open);
  return { bed, serve, instance, comesTo };
}

/** The rows for bounds of personas. */
export const OF_PERSONAS: BoundRows = {
  skillsMax: most('refused', (size) => persona({ skills: list(size, (i) => skill(`skill-${i}`)) })),
  skillFilesMax: most('refused', (size) =>
    persona({ skills: [skill('a', { files: list(size, (i) => ({ path: `${i}.md`, text: '' })) })] }),
  ),
  // Bodies and files of all of them together, in UTF-8: a letter may have two bytes.
  skillsMaxBytes: most('refused', (size) => {
    const files = [{ path: 'a.md', text: 'ü'.repeat(8) }];
    return persona({ skills: [skill('a', { files }), skill('b', { body: 'x'.repeat(size - 16) })] });
  }),
  stepsMax: most('refused', (size) => persona({ steps: list(size, (i) => ({ name: `step-${i}`, prompt: 'x' })) })),
  stepPromptMaxChars: most('refused', (size) => persona({ steps: [{ name: 'step', prompt: 'x'.repeat(size) }] })),
  personaHooksMax: most('refused', (size) =>
    persona({ hooks: list(size, () => ({ event: 'post_turn', handler: './a.js' })) }),
  ),
  personaHookTimeoutMaxMs: most('refused', (ms) => persona({ on_finish: { handler: './a.js', timeout_ms: ms } })),
  mcpServersMax: most('refused', (size) =>
    persona({ mcp_servers: Object.fromEntries(list(size, (i) => [`s${i}`, { command: 'x' }])) }),
  ),
  approvalExpiryMinMs: least('refused', (ms) => persona({ permissions: { expire_after_ms: ms } })),
  childrenMax: most('refused', (size) => persona({ limits: { children: size } })),
  depthMax: most('refused', (size) => persona({ limits: { depth: size } })),
  outputSchemaMaxBytes: most('refused', (bytes) => persona({ output: filling('title', bytes) })),
  // The root is one of them.
  outputSchemasMax: most('refused', (size) => persona({ output: { allOf: list(size - 1, () => true) } })),
  outputMaxBytes: most('refused', (bytes) => answer(JSON.stringify('x'.repeat(bytes - 2)))),
  outputValuesMax: most('refused', (size) => answer(JSON.stringify(list(size - 1, () => 0)))),
  outputRepairsMax: most('refused', (repairs) => persona({ limits: { output_repairs: repairs } })),
  outputRepairsDefault: from('output', 'output_invalid', async (misfits) => {
    const bed = testBed();
    bed.models.answers = [...list(misfits + 1, () => say('1')), say('"a"')];
    await bed.host();
    await bed.start({ output: { type: 'string' } });
    const [end] = await bed.eventsOf('agent_end');
    return String(end?.error?.code ?? (end?.output === undefined ? 'nothing' : 'output'));
  }),
  outputProblemsMax: most('counted', (size) => {
    const { problems } = checkOutput({ items: { type: 'string' } }, JSON.stringify(list(size, (i) => i))) as Misfit;
    return problems.at(-1)?.endsWith('more problems') ? 'counted' : 'ok';
  }),
  outputProblemMaxChars: most('cut', (size) => {
    const name = 'x'.repeat(size - `must have required property ''`.length);
    const { problems } = checkOutput({ required: [name] }, '{}') as Misfit;
    return problems[0]?.length === size ? 'ok' : 'cut';
  }),
  waitForPersonaMaxMs: most('refused', (ms) => persona({ limits: { wait_for_persona_ms: ms } })),
  waitForPersonaMs: from('waits', 'persona_unavailable', async (ms) => {
    const { bed, instance, comesTo } = await served();
    instance.kill();
    await bed.time.settle();
    await bed.time.advance(ms);
    return comesTo('waits');
  }),
  stepTriesMax: from('goes on', 'persona_unavailable', async (tries) => {
    const { bed, serve, instance, comesTo } = await served();
    let running = instance;
    for (let lost = 0; lost < tries; lost++) {
      const next = serve();
      running.kill();
      running = next;
      await bed.time.settle();
    }
    const losses = (await bed.eventsOf('persona_step_lost')).length;
    return losses === Math.min(tries, BOUNDS.stepTriesMax) ? comesTo('goes on') : `lost ${losses} times`;
  }),
};
