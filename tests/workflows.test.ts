/** The workflows of GitHub Actions, checked without running them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { NODE_VERSIONS } from './node-binaries.ts';

const repository = resolve(import.meta.dirname, '..');
const folder = join(repository, '.github/workflows');
const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};

interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<
    Record<
      string,
      { readonly 'timeout-minutes'?: number; readonly strategy?: { readonly matrix: { node?: string[] } } }
    >
  >;
}

const workflows = readdirSync(folder).map((name) => {
  const text = readFileSync(join(folder, name), 'utf8');
  return { name, text, workflow: parse(text) as Workflow };
});

describe.each(workflows)('$name', ({ text, workflow }) => {
  test('runs only npm scripts that exist', () => {
    const run = [...text.matchAll(/\bnpm run (?:--\S+ )*([\w:-]+)/g)].map(([, script]) => script as string);
    expect(run.filter((script) => !(script in scripts))).toEqual([]);
  });

  test('pins each action by a commit, and names its release', () => {
    const used = text.split('\n').filter((line) => /\buses:/.test(line));
    expect(used.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  test('bounds each job in time, and grants read access unless a job asks for more', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const [name, job] of Object.entries(workflow.jobs))
      expect(job['timeout-minutes'], name).toEqual(expect.any(Number));
  });
});

test('CI runs every supported Node', () => {
  const ci = workflows.find(({ name }) => name === 'ci.yml');
  expect(ci?.workflow.jobs.node?.strategy?.matrix.node).toEqual([...NODE_VERSIONS.keys()]);
});

test('CI builds the documentation site', () => {
  expect(workflows.find(({ name }) => name === 'ci.yml')?.text).toMatch(/^ +- run: npm run docs:site$/m);
});
