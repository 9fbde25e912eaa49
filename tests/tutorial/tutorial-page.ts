/** The tutorials as a reader follows them: files are saved from the page, commands typed, outputs compared. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { findServer } from '@coxswain/adapter-embedded-server';
import { expect } from 'vitest';
import { writeCheckoutNpx } from '../e2e/kit/checkout-npx.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { cleanEnv } from '../e2e/kit/clean-env.ts';
import { scratchFolder } from '../e2e/kit/scratch.ts';
import { until } from '../e2e/kit/until.ts';
import { Typed } from '../examples/walkthrough.ts';

/** A block of commands, and the blocks of text after it: the first one is the output of these commands. */
interface Step {
  readonly commands: string;
  readonly outputs: string[][];
  /** The files that the page shows since the last commands, by path. */
  readonly files: ReadonlyMap<string, string>;
}

/** A reader who goes through several pages in one folder. */
export class TutorialReader {
  /** The working folder. */
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;
  #steps: Step[] = [];

  private constructor(scratch: string) {
    this.folder = join(scratch, 'harbour');
    const path = [join(scratch, 'bin'), process.env.PATH].join(delimiter);
    this.#env = cleanEnv({ PATH: path, COX_STATE_DIR: join(scratch, 'state') });
  }

  /** Makes a folder that has what a checkout has after `npm ci`, with a `nats-server` on the `PATH`. */
  static async start(): Promise<TutorialReader> {
    const scratch = await scratchFolder('tutorial');
    await symlink(join(REPOSITORY, 'node_modules'), join(scratch, 'node_modules'));
    await symlink(join(REPOSITORY, 'examples'), join(scratch, 'examples'));
    await writeFile(join(scratch, 'package.json'), '{ "type": "module" }');
    await writeCheckoutNpx(join(scratch, 'bin'));
    const { NATS_URL: _, ...env } = process.env;
    const server = await findServer({ env });
    if (server.kind === 'binary') await symlink(server.path, join(scratch, 'bin/nats-server'));
    const reader = new TutorialReader(scratch);
    await mkdir(reader.folder);
    return reader;
  }

  /**
   * Opens a page at its beginning; the page before it must be finished.
   * @param ports the port to use instead of each port of the page.
   */
  async open(page: string, ports: ReadonlyMap<string, string> = new Map()): Promise<void> {
    this.expectEnd();
    const text = await readFile(join(REPOSITORY, page), 'utf8');
    this.#steps = stepsOf(text.replaceAll(/\b\d+\b/g, (number) => ports.get(number) ?? number));
  }

  /** Skips the next commands: their effect is already there. */
  skip(commands: string): void {
    expect(this.#steps.shift()?.commands).toBe(commands);
  }

  /** Sets the variables of the next commands, which are exports, for all later commands. */
  async exportVariables(): Promise<void> {
    const { commands } = await this.#next();
    for (const line of commands.split('\n')) {
      const [, name = '', value = ''] = /^export (\w+)=(\S+)$/.exec(line) ?? [];
      expect(name).not.toBe('');
      this.#env[name] = value;
    }
  }

  /** Types the next commands and waits for their end. @param where the folder, if it is not the reader's own. */
  async type(where = this.folder): Promise<{ readonly code: number | null; readonly later: readonly string[] }> {
    const { commands, outputs } = await this.#next();
    const typed = new Typed(commands, where, this.#env);
    const code = await typed.end();
    const [first = [], later = []] = outputs;
    expectOutput(typed.output, first);
    return { code, later };
  }

  /** The same, repeated until the output is that of the page. */
  async typeUntilSo(): Promise<void> {
    const { commands, outputs } = await this.#next();
    await until(`${outputs[0]?.join(' ')} from ${commands}`, async () => {
      const typed = new Typed(commands, this.folder, this.#env);
      await typed.end();
      return missingLine(typed.output, outputs[0] ?? []) === null;
    });
  }

  /** Types the next commands, which stay: until they have printed the page's output. */
  async stay(): Promise<Typed & { readonly later: readonly string[] }> {
    const { commands, outputs } = await this.#next();
    const typed = new Typed(commands, this.folder, this.#env);
    const [first = [], later = []] = outputs;
    await untilPrinted(typed, first);
    return Object.assign(typed, { later });
  }

  /** Expects that no command of the page is left. */
  expectEnd(): void {
    expect(this.#steps).toEqual([]);
  }

  async #next(): Promise<Step> {
    const step = this.#steps.shift();
    if (!step) throw new Error('the page has no more commands');
    for (const [path, text] of step.files) {
      await mkdir(dirname(join(this.folder, path)), { recursive: true });
      await writeFile(join(this.folder, path), text);
    }
    return step;
  }
}

/** Waits until a program that runs has printed these lines. */
export async function untilPrinted(typed: Typed, lines: readonly string[]): Promise<void> {
  const done = () => missingLine(typed.output, lines) === null || typed.hasEnded;
  // After the bound, the comparison below reports the missing line and the whole output.
  await until('the output of the page', done).catch(() => undefined);
  expectOutput(typed.output, lines);
}

/** Expects each line of the page to be a whole line of the output, in order; `…` stands for any text, or for any lines. */
export function expectOutput(output: string, lines: readonly string[]): void {
  const missing = missingLine(output, lines);
  expect(missing === null ? '' : `not printed, or not in this order: ${missing}\n--- output:\n${output}`).toBe('');
}

/** @returns the first line of the page that the output does not have, or null. */
function missingLine(output: string, lines: readonly string[]): string | null {
  const printed = output.split('\n');
  let next = 0;
  for (const line of lines) {
    if (line.trim() === '…') continue;
    const parts = line.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const pattern = new RegExp(`^${parts.join('.*')}\\s*$`);
    const at = printed.findIndex((one, index) => index >= next && pattern.test(one));
    if (at < 0) return line;
    next = at + 1;
  }
  return null;
}

function stepsOf(page: string): Step[] {
  const steps: Step[] = [];
  let files = new Map<string, string>();
  for (const [, language, text = ''] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const [, path] = /^(?:#|\/\/) (\S+)\n/.exec(text) ?? [];
    if (language === 'sh') {
      steps.push({ commands: text.trimEnd(), outputs: [], files });
      files = new Map();
    } else if (language === 'text') steps.at(-1)?.outputs.push(text.trimEnd().split('\n'));
    else if (path) files.set(path, text);
    else throw new Error(`a block of ${language} without a path: a reader would not know where to save it`);
  }
  expect(files.size).toBe(0);
  return steps;
}
