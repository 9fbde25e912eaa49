/** Personas from folders, as people use them: checked, run with skills that outlive their folder, in steps. */
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CoxBed } from './cox-process.ts';

let bed: CoxBed;
beforeEach(async () => {
  bed = await CoxBed.make();
}, 180_000);
afterEach(() => bed.remove(), 180_000);

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(bed.folder, name)), { recursive: true });
    await bed.file(name, text);
  }
}

const REVIEWER = {
  'personas/reviewer/persona.yaml':
    'name: reviewer\nmodel: scripted/review.yaml\nmodes: {strict: {prompt: Be strict.}}\n',
  'personas/reviewer/prompt.md': 'You review.',
  'personas/reviewer/skills/check-security/SKILL.md':
    '---\nname: check-security\ndescription: How to look for holes.\n---\n\nRead references/owasp.md first.\n',
  'personas/reviewer/skills/check-security/references/owasp.md': 'A01: Broken access control.',
};

test('cox persona lists, checks and shows what lies in personas/', async () => {
  await write({ ...REVIEWER, 'personas/broken.yaml': 'name: broken\nlimits:\n  max_turn: 3\n' });
  const listed = await bed.run(['persona', 'list', '--json']);
  expect(
    listed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { path: 'personas/broken.yaml', valid: false },
    { path: 'personas/reviewer', valid: true, name: 'reviewer', version: expect.stringMatching(/^[0-9a-f]{16}$/) },
  ]);
  const checked = await bed.run(['persona', 'check']);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toMatch(/broken\.yaml:3:3: unknown key "limits\.max_turn"; did you mean "max_turns"\?/);
  expect(checked.stdout).toMatch(/personas\/reviewer: reviewer [0-9a-f]{16} is valid/);
  expect(await bed.run(['persona', 'check', 'personas/reviewer'])).toMatchObject({ code: 0 });
  const shown = await bed.run(['persona', 'show', 'reviewer']);
  expect(shown.stdout).toMatch(/skills +check-security/);
  expect(shown.stdout).toContain('You review.');
}, 120_000);

test('cox persona tells of hand-offs, and of one to nobody who lies there', async () => {
  await write({
    'personas/desk.yaml': 'name: desk\nhandoffs: [clark, boss]\n',
    'personas/clerk.yaml': 'name: clerk\ndescription: Keeps papers.\nhandoffs: [desk]\n',
    'personas/boss.yaml': 'name: boss\n',
  });
  expect((await bed.run(['persona', 'list'])).stdout).toMatch(
    /clerk +[0-9a-f]{16} +personas\/clerk\.yaml +Keeps papers\. {2}→ desk/,
  );
  expect((await bed.run(['persona', 'show', 'clerk'])).stdout).toMatch(/hands off to +desk/);
  const checked = await bed.run(['persona', 'check']);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toMatch(
    /desk\.yaml:2:12: handoffs\[0\]: there is no persona clark in personas; did you mean "clerk"\?/,
  );
  await write({ 'personas/boss2.yaml': 'name: boss\n' });
  expect((await bed.run(['persona', 'check'])).stdout).toMatch(
    /boss2\.yaml:1:7: name: personas\/boss\.yaml is named boss already/,
  );
  // Of a file alone nobody can say who else is there.
  expect(await bed.run(['persona', 'check', 'personas/desk.yaml'])).toMatchObject({ code: 0 });
}, 120_000);

test('cox persona shows hooks, and says which code of theirs is not there', async () => {
  await write({
    'personas/guard.yaml': `name: guard
hooks:
  - { event: PreToolUse, pattern: 'run_*', deny: not here }
  - { event: PostToolUse, max_output: 100 }
  - { event: OnBudgetThreshold(80), returns: { body: Come to an end. } }
  - { event: post_turn, handler: './policy.js#note', id: note }
on_finish: ./policy.js
`,
    'personas/policy.js': 'throw new Error("it is not run")',
  });
  const shown = (await bed.run(['persona', 'show', 'guard'])).stdout;
  for (const line of [
    /guard:on_finish +post_finish +\* +asks \.\/policy\.js/,
    /guard:PreToolUse-1 +PreToolUse +run_\* +denies: not here/,
    /guard:PostToolUse-2 +PostToolUse +\* +cuts to 100 characters/,
    /guard:OnBudgetThreshold-3 +OnBudgetThreshold\(80\) +\* +returns \{"body":"Come to an end\."\}/,
    /guard:note +post_turn +\* +asks \.\/policy\.js#note/,
  ])
    expect(shown).toMatch(line);
  const checked = await bed.run(['persona', 'check', 'personas/guard.yaml']);
  expect([checked.code, checked.stdout]).toEqual([
    0,
    expect.stringMatching(/guard [0-9a-f]{16} is valid\n +guard:on_finish/),
  ]);
  await rm(join(bed.folder, 'personas/policy.js'));
  expect((await bed.run(['persona', 'check', 'personas/guard.yaml'])).stdout).toMatch(
    /guard\.yaml:7:12: on_finish: there is no file .*policy\.js/,
  );
  await bed.file('personas/guard.yaml', "name: guard\non_finish: './policy.js#a#b'\n");
  expect((await bed.run(['persona', 'check', 'personas/guard.yaml'])).stdout).toMatch(
    /guard\.yaml:2:12: on_finish: write \.\/file\.js#name, not "\.\/policy\.js#a#b"/,
  );
  await rm(join(bed.folder, 'personas/guard.yaml'));
}, 120_000);

test('a session goes on with its skills when their folder is gone and its host was killed', async () => {
  await write({
    ...REVIEWER,
    'review.yaml': `turns:
  - {calls: [{tool: load_skill, args: {name: check-security}}]}
  - {calls: [{tool: run_command, args: {command: sleep 4}}]}
  - {calls: [{tool: load_skill, args: {name: check-security, file: references/owasp.md}}]}
  - {calls: [{tool: load_skill, args: {name: check-security, file: ../../persona.yaml}}]}
  - {text: Reviewed.}
`,
  });
  const flags = ['--persona', 'reviewer', '--persona-mode', 'strict', '--allow', 'run_command'];
  const run = bed.start(['run', 'review it', '--id', 'r1', ...flags]);
  await run.seen(/▸ run_command/);
  run.child.kill('SIGKILL');
  await run.end;
  await rm(join(bed.folder, 'personas'), { recursive: true });
  const attached = await bed.run(['attach', 'r1']);
  expect({ code: attached.code, stdout: attached.stdout }, attached.stderr).toEqual({ code: 0, stdout: 'Reviewed.\n' });
  const events = (await bed.run(['session', 'watch', 'r1', '--json'])).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const provision = events.find(({ type }) => type === 'persona_changed')?.provision;
  expect(provision.system_prompt).toMatch(
    /^You review\.\n\nYou have skills: .*\n- check-security: How to look for holes\.\n\nBe strict\.$/s,
  );
  expect(provision.mode).toBe('strict');
  const loaded = events.filter(({ type, tool }) => type === 'call_ended' && tool === 'load_skill');
  expect(loaded.map(({ status, result }) => [status, result.content[0].text])).toEqual([
    ['ok', 'Read references/owasp.md first.'],
    ['ok', 'A01: Broken access control.'],
    ['error', expect.stringContaining('the skill check-security has no file ../../persona.yaml')],
  ]);
}, 180_000);

test('a persona works in steps, each with the tools that it has', async () => {
  await write({
    'personas/writer.yaml': `name: writer
model: scripted/write.yaml
steps:
  - {name: collect, prompt: List what is new., tools: [list_files]}
  - {name: write, prompt: Write it down., tools: []}
`,
    'write.yaml': `turns:
  - {match: 'Step 1 of 2: collect', calls: [{tool: list_files, args: {}}]}
  - {text: Nothing is new.}
  - {match: 'Step 2 of 2: write', calls: [{tool: list_files, args: {}}]}
  - {text: Written.}
`,
  });
  const { code, stdout, stderr } = await bed.run(['run', 'go', '--persona', 'writer', '--id', 'w1']);
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: expect.stringContaining('Written.') });
  expect(stderr).toMatch(/§ collect[\s\S]*§ write/);
  const events = (await bed.run(['session', 'watch', 'w1', '--json'])).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events.filter(({ type }) => type === 'step_finished')).toMatchObject([
    { step: 'collect', status: 'completed' },
    { step: 'write', status: 'completed' },
  ]);
  expect(events.filter(({ type }) => type === 'call_ended').map(({ status }) => status)).toEqual(['ok', 'error']);
  expect((await bed.run(['session', 'replay', 'w1'])).stdout).toMatch(/^byte-identical/);
}, 120_000);

test('a mode that the persona has not is named with those that it has, before anything is started', async () => {
  await write(REVIEWER);
  const { code, stderr } = await bed.run(['run', 'go', '--persona', 'reviewer', '--persona-mode', 'stric']);
  expect(code).toBe(2);
  expect(stderr).toContain('the persona reviewer has no mode stric; it has: strict; did you mean "strict"?');
}, 180_000);
