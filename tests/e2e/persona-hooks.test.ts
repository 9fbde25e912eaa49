/** Hooks of personas whose code runs in the process that serves them: asked over the bus, by version, and decided where it is gone. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { calls, done, textOf } from './kit/called-tools.ts';
import { type Child, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { servePersona } from './kit/persona-service.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { servedPersonas } from './kit/served-personas.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const { fresh, start, known, listed } = servedPersonas(fixture);
const processes: Child[] = [];
afterEach(async () => {
  await Promise.all(processes.splice(0).map((child) => child.kill()));
});

/** Writes a persona's folder and a module beside it; in that `note(text)` writes a line, and `pid` is the process. */
async function folderOf(name: string, persona: object, code: string) {
  const folder = join(await scratchFolder('hooked'), name);
  const log = join(folder, 'log');
  await mkdir(folder);
  await writeFile(log, '');
  // JSON is YAML too.
  await writeFile(join(folder, 'persona.yaml'), JSON.stringify({ name, prompt: 'You work.', ...persona }, null, 1));
  await writeFile(
    join(folder, 'policy.ts'),
    `import { appendFileSync } from 'node:fs';
     const note = (text: string) => appendFileSync(${JSON.stringify(log)}, text + '\\n');
     const pid = process.pid;
     ${code}`,
  );
  return { folder, log: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '') };
}

async function serve(path: string) {
  const one = await servePersona(fixture.bus, path);
  processes.push(one.child);
  return one;
}

const permissions = { rules: [{ tool: '*', action: 'allow' }] };

test('a file names its handlers as a manifest does: they veto, rewrite, read the transcript and are told of the end', async () => {
  const name = fresh('guarded');
  const { folder, log } = await folderOf(
    name,
    {
      model: await scripted([calls('list_files', { path: 'secrets' }), calls('list_files', { path: '.' }), done]),
      permissions,
      hooks: [
        { event: 'PreToolUse', pattern: 'tool.args.path == "secrets"', deny: 'not there' },
        { event: 'PreToolUse', pattern: 'list_files', handler: './policy.ts#look', id: 'look' },
        { event: 'PostToolUse', handler: './policy.ts#cut', id: 'cut' },
      ],
      on_finish: './policy.ts#told',
    },
    `export const look = async ({ tool }, context) => {
       note('look ' + tool.callId + ' ' + (await context.transcript()).length);
       context.feedback('looked at by ' + pid);
     };
     export const cut = () => 'nothing to see by ' + pid;
     export const told = ({ stopReason }) => { note('told ' + stopReason); };`,
  );
  const { child, version } = await serve(folder);
  await known(name);
  const journal = await endOf(fixture.bus, await start(name));
  const [denied, ran] = journal.of('call_ended');
  expect(denied).toMatchObject({ status: 'denied', denial: { hook: `${name}:PreToolUse-1`, reason: 'not there' } });
  expect(textOf(ran?.result)).toBe(`nothing to see by ${child.pid}`);
  expect(await log()).toEqual([expect.stringMatching(/^look \S+ [1-9]/), 'told end_turn']);
  expect(JSON.stringify(journal.of('message_injected'))).toContain(`looked at by ${child.pid}`);
  const [table] = journal.of('hooks_changed');
  expect(table?.table.map(({ id, persona_version }) => [id, persona_version])).toEqual([
    [`${name}:on_finish`, version],
    [`${name}:PreToolUse-1`, version],
    [`${name}:look`, version],
    [`${name}:cut`, version],
  ]);
});

test('a module has its handlers in the definition, and each session asks those of the version that it has pinned', async () => {
  const name = fresh('versioned');
  const model = JSON.stringify({ name: await scripted([done]) });
  const module = async (version: string) => {
    const file = join(await scratchFolder('module'), 'persona.ts');
    await writeFile(
      file,
      `import { definePersona } from '@coxswain/client';
       export default definePersona({ name: ${JSON.stringify(name)}, version: '${version}', prompt: 'You work.', model: ${model},
         hooks: [{ event: 'session_start', handler: () => ({ body: 'from ${version}' }) }] });`,
    );
    return file;
  };
  await serve(await module('v1'));
  await known(name);
  const first = await start(name);
  await endOf(fixture.bus, first);
  await serve(await module('v2'));
  await fixture.host.says(new RegExp(`"persona":"${name}","version":"v2".*a persona is announced`));
  const second = await start(name);
  await endOf(fixture.bus, second);
  await fixture.bus.command(first, 'prompt', { body: 'again' });
  const reminders = async (id: string, run: number) =>
    (await endOf(fixture.bus, id, run)).of('reminder_injected').map(({ body }) => body);
  expect(await reminders(first, 2)).toEqual(['from v1', 'from v1']);
  expect(await reminders(second, 1)).toEqual(['from v2']);
});

test('the process is killed while it is asked: the hook has not answered, and its on_error decides', async () => {
  const name = fresh('killed');
  const { folder, log } = await folderOf(
    name,
    {
      model: await scripted([done]),
      hooks: [{ event: 'user_prompt_submit', handler: './policy.ts#wait', id: 'wait', timeout_ms: 2_000 }],
    },
    `export const wait = ({ prompt }) => { note(prompt); return prompt === 'Go.' ? new Promise(() => {}) : true; };`,
  );
  const { child } = await serve(folder);
  await known(name);
  const id = await start(name);
  await eventOf(fixture.bus, id, 'hook_call');
  await expect.poll(log, { timeout: 20_000 }).toEqual(['Go.']);
  await child.kill();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('hook_returned')).toMatchObject([{ hook: `${name}:wait`, failure: { code: 'hook_timeout' } }]);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'user_prompt_submit_blocked' }]);
  await serve(folder);
  await fixture.bus.command(id, 'prompt', { body: 'Again.' });
  expect((await endOf(fixture.bus, id, 2)).of('agent_end')[1]).toMatchObject({ stop_reason: 'end_turn' });
});

test('one of several is killed while it is asked: another one is asked in its place, under the same key', async () => {
  const name = fresh('shared');
  const { folder, log } = await folderOf(
    name,
    {
      model: await scripted([done]),
      hooks: [{ event: 'user_prompt_submit', handler: './policy.ts#first', id: 'first', timeout_ms: 60_000 }],
    },
    `import { existsSync, writeFileSync } from 'node:fs';
     const asked = import.meta.dirname + '/asked';
     export const first = (_, { idempotencyKey }) => {
       note(pid + ' ' + idempotencyKey);
       if (existsSync(asked)) return true;
       writeFileSync(asked, '');
       return new Promise(() => {});
     };`,
  );
  const among = await Promise.all([serve(folder), serve(folder)]);
  await known(name);
  const id = await start(name);
  await expect.poll(log, { timeout: 20_000 }).toHaveLength(1);
  const [first = ''] = await log();
  const [pid, key] = first.split(' ');
  expect(key?.startsWith(`default.${id}.`) && key.endsWith(`.${name}:first`)).toBe(true);
  await among.find(({ child }) => child.pid === Number(pid))?.child.kill();
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(journal.of('hook_returned')).toMatchObject([{ hook: `${name}:first`, verdict: { kind: 'no_objection' } }]);
  const other = among.find(({ child }) => child.pid !== Number(pid))?.child.pid;
  expect(await log()).toEqual([`${pid} ${key}`, `${other} ${key}`]);
});

test('an instance that is told to stop answers what it was asked before it says that it has gone', async () => {
  const name = fresh('draining');
  const { folder, log } = await folderOf(
    name,
    {
      model: await scripted([done]),
      hooks: [{ event: 'user_prompt_submit', handler: './policy.ts#slow', id: 'slow', timeout_ms: 60_000 }],
    },
    `import { existsSync } from 'node:fs';
     export const slow = async () => {
       note('asked');
       while (!existsSync(import.meta.dirname + '/open')) await new Promise((go) => setTimeout(go, 20));
       note('answered');
       return { block: true, reason: 'by hand' };
     };`,
  );
  const { child } = await serve(folder);
  await known(name);
  const id = await start(name);
  await expect.poll(log, { timeout: 20_000 }).toEqual(['asked']);
  const stopped = child.terminate();
  // It runs nothing but the handler, and has not gone.
  await until('it drains', async () => (await listed(name))?.instances[0]?.state === 'draining');
  await writeFile(join(folder, 'open'), '');
  expect((await stopped).code).toBe(0);
  const journal = await endOf(fixture.bus, id);
  expect(journal.of('hook_vetoed')).toMatchObject([{ hook: `${name}:slow`, reason: 'by hand' }]);
});

test('what a handler leaves behind is reported, also an error without text, and the process goes on', async () => {
  const name = fresh('leaving');
  const { folder } = await folderOf(
    name,
    { model: await scripted([done]), hooks: [{ event: 'session_start', handler: './policy.ts#leave' }] },
    `export const leave = () => {
       Promise.reject(new Error('left here'));
       Promise.reject(Object.create(null));
     };`,
  );
  const { child } = await serve(folder);
  await known(name);
  expect((await endOf(fixture.bus, await start(name))).of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  await child.says('a tool or a hook of a persona caused an unhandled rejection: Error: left here', 'stderr');
  await child.says('a tool or a hook of a persona caused an unhandled rejection: an error without text', 'stderr');
  expect((await endOf(fixture.bus, await start(name))).of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(child.exit).toBeNull();
});

test('a handler that is not there is told by the persona’s file, line and column, and nothing is served', async () => {
  const hooks = [{ event: 'post_turn', handler: './policy.ts#lok' }];
  const { folder } = await folderOf(fresh('broken'), { hooks }, 'export const look = () => true;');
  const refused = await cox(['serve', 'personas', folder, '--nats', fixture.bus.natsUrl]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(
    /persona\.yaml:\d+:\d+: hooks\[0\]\.handler: .*policy\.ts has no function lok; it exports look/,
  );
});
