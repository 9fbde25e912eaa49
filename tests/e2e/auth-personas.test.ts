/** A persona on a bus where every program has a key of its own: it answers with the key of its role, and reaches nothing else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { calls, done, textOf } from './kit/called-tools.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { type GuardedBus, startGuardedBus } from './kit/guarded-bus.ts';
import { personaModule, readyOf } from './kit/persona-service.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

let bus: GuardedBus;
let host: Child;
let persona: Child;

beforeAll(async () => {
  bus = await startGuardedBus(['default']);
  host = await bus.startHost();
  const module = await personaModule(
    {
      name: 'clerk',
      prompt: 'You work.',
      model: await scripted([calls('where'), done]),
      permissions: { rules: [{ tool: '*', action: 'allow' }] },
    },
    `[defineTool({ name: 'where', description: 'Where.', inputSchema: z.object({}), execute: () => 'in ' + process.pid })]`,
    `[{ event: 'PostToolUse', pattern: 'where', async handler({ tool, result }, { transcript, feedback }) {
        feedback('looked at');
        return result.content[0].text + ', call ' + tool.name + ' of ' + ((await transcript()).length > 0);
      } }]`,
  );
  persona = new Child(COX_MAIN, ['serve', 'personas', module.file, '--json'], { env: bus.env('personas') });
  await readyOf(persona);
  await host.says(/"persona":"clerk".*a persona is announced/);
}, 300_000);
afterAll(async () => {
  await persona?.kill();
  await host?.kill();
  await bus?.stop();
  await removeScratch();
});

test('its steps, tools, hooks and long requests pass from account to account, and an operator pauses it', async () => {
  const operator = await bus.client('operator');
  const paused = await cox(['persona', 'pause', 'clerk'], { env: bus.env('operator') });
  expect([paused.code, paused.stdout]).toEqual([0, expect.stringContaining('is paused')]);
  const session = await operator.startSession(
    { prompt: `Go. ${'x'.repeat(220_000)}`, persona: 'clerk', root: await scratchFolder('root') },
    { wait: 'accepted' },
  );
  const seen: string[] = [];
  let result = '';
  let injected = '';
  for await (const { events } of session.records()) {
    for (const event of events) {
      seen.push(event.type);
      if (event.type === 'message_injected') injected += textOf(event.message) ?? '';
      if (event.type === 'call_ended') result = textOf(event.result) ?? '';
      if (event.type === 'waiting_for_persona')
        expect((await cox(['persona', 'resume', 'clerk'], { env: bus.env('operator') })).code).toBe(0);
    }
    if (events.some(({ type }) => type === 'agent_end')) break;
  }
  expect(seen.filter((type) => type === 'message_complete')).toHaveLength(2);
  expect(seen).toContain('persona_wait_ended');
  expect(result).toBe(`in ${persona.pid}, call where of true`);
  // What its hook has told the model stands in the journal as everything that is said to it.
  expect(injected).toContain('looked at');
});

test('keys of other roles serve nobody', async () => {
  const { file } = await personaModule({ name: 'intruder', prompt: 'You work.', model: 'scripted/none.yaml' });
  for (const role of ['tools', 'hooks', 'steerer', 'operator'] as const) {
    const refused = await cox(['serve', 'personas', file], { env: bus.env(role) });
    expect([role, refused.code, refused.stderr]).toEqual([role, 1, expect.stringContaining('not_permitted')]);
  }
  const listed = await cox(['persona', 'list', '--served', '--json'], { env: bus.env('operator') });
  expect(listed.json.map(({ name }) => name)).toEqual(['clerk']);
});

test('the key cannot pause a persona', async () => {
  const refused = await cox(['persona', 'pause', 'clerk'], { env: bus.env('personas') });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('not_permitted')]);
});
