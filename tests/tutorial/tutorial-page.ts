/** docs/tutorial.md as a reader goes through it: files are saved as the page has them, commands typed, answers compared. */
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { cleanEnv } from '../e2e/kit/clean-env.ts';
import { scratchFolder } from '../e2e/kit/scratch.ts';
import { until } from '../e2e/kit/until.ts';
import { expectLines, Typed } from '../examples/walkthrough.ts';

/** A block of commands, and the blocks of text behind it: the first is what these commands say. */
interface Step {
  readonly commands: string;
  readonly says: string[][];
  /** What a reader has saved since the last commands, by path. */
  readonly files: ReadonlyMap<string, string>;
}

/** The page, from top to bottom. */
export class TutorialPage {
  /** Where the reader works. */
  readonly folder: string;
  readonly stateDir: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #steps: Step[];

  private constructor(scratch: string, steps: Step[]) {
    this.folder = join(scratch, 'harbour');
    this.stateDir = join(scratch, 'state');
    this.#steps = steps;
    const path = [join(scratch, 'bin'), process.env.PATH].join(delimiter);
    this.#env = cleanEnv({ PATH: path, COX_STATE_DIR: this.stateDir });
  }

  /** Opens it at its beginning, with a folder that has what a checkout has after `npm ci`. */
  static async open(): Promise<TutorialPage> {
    const scratch = await scratchFolder('tutorial');
    await symlink(join(REPOSITORY, 'node_modules'), join(scratch, 'node_modules'));
    await writeFile(join(scratch, 'package.json'), '{ "type": "module" }');
    await mkdir(join(scratch, 'bin'));
    // What npx would find in a checkout, without its look at the network.
    const npx = join(scratch, 'bin/npx');
    await writeFile(npx, `#!/bin/sh\nbin=$1\nshift\nexec '${REPOSITORY}/node_modules/.bin/'"$bin" "$@"\n`);
    await chmod(npx, 0o755);
    const page = new TutorialPage(scratch, stepsOf(await readFile(join(REPOSITORY, 'docs/tutorial.md'), 'utf8')));
    await mkdir(page.folder);
    return page;
  }

  /** The next commands, which are not typed: what a reader has done before this page can be tried here. */
  skip(commands: string): void {
    expect(this.#steps.shift()?.commands).toBe(commands);
  }

  /** Types the next commands, to their end. @param where the folder, if it is not the reader's own. */
  async type(where = this.folder): Promise<{ readonly code: number | null; readonly later: readonly string[] }> {
    const { commands, says } = await this.#next();
    const typed = new Typed(commands, where, this.#env);
    const code = await typed.end();
    const [first = [], later = []] = says;
    expectLines(typed.output, first);
    return { code, later };
  }

  /** The same, of what a reader looks at until it is so. */
  async typeUntilSo(): Promise<void> {
    const { commands, says } = await this.#next();
    await until(`${says[0]?.join(' ')} from ${commands}`, async () => {
      const typed = new Typed(commands, this.folder, this.#env);
      await typed.end();
      return says[0]?.every((line) => typed.output.includes(line));
    });
  }

  /** Types the next commands, of which the last stays: until it has said what the page says. */
  async stay(): Promise<Typed> {
    const { commands, says } = await this.#next();
    const typed = new Typed(commands, this.folder, this.#env);
    for (const line of says[0] ?? []) await typed.says(line);
    expectLines(typed.output, says[0] ?? []);
    return typed;
  }

  /** That nothing of the page is left. */
  expectEnd(): void {
    expect(this.#steps).toEqual([]);
  }

  async #next(): Promise<Step> {
    const step = this.#steps.shift();
    if (!step) throw new Error('the tutorial has no more commands');
    for (const [path, text] of step.files) {
      await mkdir(dirname(join(this.folder, path)), { recursive: true });
      await writeFile(join(this.folder, path), text);
    }
    return step;
  }
}

function stepsOf(page: string): Step[] {
  const steps: Step[] = [];
  let files = new Map<string, string>();
  for (const [, language, text = ''] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const [, path] = /^(?:#|\/\/) (\S+)\n/.exec(text) ?? [];
    if (language === 'sh') {
      steps.push({ commands: text.trimEnd(), says: [], files });
      files = new Map();
    } else if (language === 'text') steps.at(-1)?.says.push(text.trimEnd().split('\n'));
    else if (path) files.set(path, text);
    else throw new Error(`a block of ${language} that says no path: a reader would not know where to save it`);
  }
  expect(files.size).toBe(0);
  return steps;
}
