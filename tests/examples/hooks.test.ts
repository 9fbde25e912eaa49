/** The examples of hooks, as their READMEs tell them. What follows a block there is checked as it is typed. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { SECRETS } from '../../examples/hooks/01-refuse-secrets/secrets.ts';
import { readTrail, type TrailLine } from '../../examples/hooks/07-audit-trail/read-trail.ts';
import document from '../../examples/hooks/08-policy-service/policy.json' with { type: 'json' };
import { decide, readPolicy } from '../../examples/hooks/08-policy-service/rules.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { expectLines, Walkthrough } from './walkthrough.ts';

afterAll(removeScratch);

describe('01 refuse secrets', () => {
  test('a prompt and a steer with a secret reach no model, a steer without one does', async () => {
    const readme = await Walkthrough.of('01-refuse-secrets');
    const prompt = await readme.next();
    expect(await prompt.end()).toBe(5);
    await readme.next();
    const steering = await readme.next();
    expect(await steering.end()).toBe(0);
    readme.expectEnd();
    // What was typed is shown to whoever typed it, and stands in no log.
    const files = await readdir(readme.stateDir, { recursive: true });
    const logs = await Promise.all(
      files.filter((file) => file.endsWith('.log')).map((file) => readFile(join(readme.stateDir, file), 'utf8')),
    );
    expect(logs.length).toBeGreaterThan(0);
    expect(logs.join('\n')).not.toMatch(/AKIA|hunter2/);
  });

  // Put together here, so that no scanner takes this file for a leak.
  const letters = (count: number) => 'a1B2c3D4e5F6g7H8'.repeat(16).slice(0, count);
  const known: Readonly<Record<string, string>> = {
    'a private key': '-----BEGIN OPENSSH PRIVATE'.concat(' KEY-----'),
    'an AWS access key': 'AKIA'.concat('IOSFODNN7EXAMPLE'),
    'an Anthropic key': 'sk-'.concat('ant-api03-', letters(90)),
    'an OpenAI key': 'sk-'.concat('proj-', letters(60)),
    'a Google key': 'AIza'.concat(letters(35)),
    'a GitHub token': 'ghp_'.concat(letters(36)),
    'a GitLab token': 'glpat-'.concat(letters(20)),
    'a Slack token': 'xoxb-'.concat('123456789012-', letters(24)),
    'a Stripe key': 'sk_live_'.concat(letters(24)),
    'an npm token': 'npm_'.concat(letters(36)),
    'a JSON web token': 'eyJ'.concat('hbGciOiJIUzI1NiJ9', '.eyJ', 'zdWIiOiIxMjM0NTY3ODkwIn0.x'),
    'a password in an address': 'postgres://cox:'.concat('rudder', '@db.example.com/logs'),
    'an assigned secret': 'API_KEY="'.concat(letters(40), '"'),
  };

  test.each(Object.keys(SECRETS))('%s is known, in the middle of a text', (kind) => {
    const text = `Please use\n${known[kind]} for it.`;
    expect(Object.keys(SECRETS).find((name) => SECRETS[name]?.test(text))).toBe(kind);
  });

  test.each([
    'Read the token from process.env.GITHUB_TOKEN and the key from the vault.',
    'Rename risk-assessment-of-the-harbour to sk-something.',
    'See https://example.com:8080/a?b=c@d and mail me at cox@example.com.',
    'The hash is 3f786850e387550fdab836ed7e6dc881de23001b, password: see below.',
  ])('no secret: %s', (text) => {
    expect(Object.keys(SECRETS).filter((kind) => SECRETS[kind]?.test(text))).toEqual([]);
  });

  test.each(Object.entries(SECRETS))('%s is looked for in linear time: no repetition is unbounded', (_, { source }) => {
    const withoutLiterals = source.replace(/\\./g, '').replace(/\[[^\]]*\]/g, '');
    expect(withoutLiterals).not.toMatch(/[*+]|\{\d+,\}/);
  });
});

test('02 gate exec tools: a command is refused although the session allows everything', async () => {
  const readme = await Walkthrough.of('02-gate-exec-tools');
  await readme.next();
  readme.expectEnd();
  expect(await readdir(readme.folder)).not.toContain('ran.txt');
});

test('03 cut results: what the model is shown of a result has at most 4,000 characters', async () => {
  const readme = await Walkthrough.of('03-cut-results');
  await readme.next();
  readme.expectEnd();
  const events = (await readFile(join(readme.folder, 'events.jsonl'), 'utf8')).trim().split('\n');
  const results = events
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === 'call_ended')
    .map(({ result }) => result.content.map(({ text }: { text: string }) => text).join('') as string);
  expect(results.map(({ length }) => length)).toEqual([4_000, 4_000]);
  expect(results[0]).toMatch(/^1\n2\n[\s\S]*\n5000\n/);
});

test('04 remind before fetches: the model is reminded beside what it fetches, and only then', async () => {
  const readme = await Walkthrough.of('04-remind-before-fetch');
  await readme.next();
  await readme.next();
  const run = await readme.next();
  readme.expectEnd();
  expect(run.output.match(/ reminds: /g)).toHaveLength(1);
});

test('05 lint after edits: the model mends its file when the linter, which has run, says what is wrong', async () => {
  const readme = await Walkthrough.of('05-lint-after-edit');
  const run = await readme.next();
  expect(await run.end()).toBe(0);
  readme.expectEnd();
});

test('06 budget alarms: each threshold is told once, to whom it concerns', async () => {
  const readme = await Walkthrough.of('06-budget-alarms');
  await readme.next();
  const service = await readme.next();
  const run = await readme.next();
  expect(await run.end()).toBe(4);
  readme.expectEnd();
  await service.says('100 %');
  expectLines(service.output, ['note: session ', 'has used 50 %', 'ALARM: session ', 'has used 100 %']);
  expect(service.output.match(/has used/g)).toHaveLength(2);
  expect(run.output.match(/ reminds: /g)).toHaveLength(1);
});

describe('07 audit trail', () => {
  test('every call, permission and control is on it; where it cannot be written nothing happens', async () => {
    const readme = await Walkthrough.of('07-audit-trail');
    await readme.next();
    const lines: TrailLine[] = [];
    for await (const line of readTrail(join(readme.folder, 'audit.jsonl'))) lines.push(line);
    expect(lines.filter(({ event }) => event === 'command')).toMatchObject([
      { verb: 'start', body: { prompt: 'Take a note' } },
      { verb: 'approve', body: { decision: 'deny' } },
    ]);
    expect((await stat(join(readme.folder, 'audit.jsonl'))).mode & 0o077).toBe(0);
    await readme.next();
    readme.expectEnd();
  });

  test('a line that was written twice counts once, and one that was torn is passed over', async () => {
    const file = join(await scratchFolder('trail'), 'audit.jsonl');
    const line = (id: string, at: string) => JSON.stringify({ id, at, event: 'PreToolUse' });
    await writeFile(file, `\n${line('a', '1')}\n${line('b', '2').slice(0, 9)}\n${line('b', '3')}\n${line('a', '4')}`);
    const lines: TrailLine[] = [];
    for await (const one of readTrail(file)) lines.push(one);
    expect(lines.map(({ id, at }) => [id, at])).toEqual([
      ['a', '1'],
      ['b', '3'],
    ]);
  });
});

describe('08 policy service', () => {
  test('a process of its own decides by a document, follows its changes, and allows nothing when it is gone', async () => {
    const readme = await Walkthrough.of('08-policy-service');
    await readme.next();
    const service = await readme.next();
    const first = await readme.next();
    expect(first.output).toContain('▸ write_file path: docs/plan.md');
    expect(first.output).not.toContain('▸ write_file path: docs/../policy.md');

    await writeFile(join(readme.folder, 'policy.json'), '{ "rules": [{ "tolls": [] }], "default": "allow" }');
    await service.says('the new version was rejected');
    await readme.next();
    await service.says('hooks reloaded');
    await readme.next();

    await service.stop();
    const closed = await readme.next();
    expect(closed.output).not.toContain('▸');
    await readme.next();
    readme.expectEnd();
  });

  const policy = readPolicy(document);

  test.each([
    ['read_file', { path: 'a' }, 'allow'],
    ['write_file', { path: 'docs/a' }, 'allow'],
    ['write_file', { path: './docs//a' }, 'allow'],
    ['write_file', { path: 'docs' }, 'ask'],
    ['write_file', { path: 'docs/../a' }, 'ask'],
    ['write_file', { path: '/docs/a' }, 'ask'],
    ['write_file', { path: ['docs/a'] }, 'ask'],
    ['edit_file', null, 'ask'],
    ['run_command', { command: 'npm test' }, 'allow'],
    ['run_command', { command: 'npm test; rm -rf .' }, 'deny'],
    ['deploy', {}, 'deny'],
  ] as const)('%s %j: %s', (tool, args, effect) => {
    expect(decide(policy, tool, args).effect).toBe(effect);
  });

  test.each([
    [{ rules: [], default: 'alow' }, 'default'],
    [{ rules: [{ tools: ['a'], effect: 'maybe' }], default: 'deny' }, 'rules[0].effect'],
    [{ rules: [{ tools: ['a'], effect: 'allow', undr: {} }], default: 'deny' }, 'undr'],
    [{ rules: [{ tools: ['a*b'], effect: 'allow' }], default: 'deny' }, 'rules[0].tools'],
  ])('no policy: %j', (written, named) => {
    expect(() => readPolicy(written)).toThrow(named);
  });
});

test('every example is in the index', async () => {
  const index = await readFile(join(REPOSITORY, 'examples/README.md'), 'utf8');
  for (const name of await readdir(join(REPOSITORY, 'examples/hooks'))) expect(index).toContain(`(hooks/${name})`);
});
