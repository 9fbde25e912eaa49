/**
 * Walks through the README of an example as a reader would: types each block of commands under "Try it" as it stands, in
 * a copy of the example, and holds what is said against the text block that follows.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { writeCheckoutNpx } from '../e2e/kit/checkout-npx.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { cleanEnv } from '../e2e/kit/clean-env.ts';
import { scratchFolder } from '../e2e/kit/scratch.ts';
import { until } from '../e2e/kit/until.ts';

/** What a command says when it is to be left running. */
const STAYS = 'stop with Ctrl-C';

interface Block {
  readonly commands: string;
  /** Lines that it says among others, in this order. */
  readonly says: readonly string[];
}

/** A block of commands in a shell of its own, as it was typed. */
export class Typed {
  output = '';
  readonly #shell: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(commands: string, cwd: string, env: NodeJS.ProcessEnv) {
    // A session of processes of its own, as a terminal's: what is typed into it reaches all of them.
    this.#shell = spawn('sh', ['-c', `exec 2>&1\n${commands}`], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe'],
    });
    this.#shell.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
    this.#ended = once(this.#shell, 'close');
    onTestFinished(() => this.signal('SIGTERM'));
  }

  /** The exit code of its last command. */
  async end(): Promise<number | null> {
    await this.#ended;
    return this.#shell.exitCode;
  }

  /** Waits for something that it says. */
  async says(text: string): Promise<void> {
    await until(`${text} in\n${this.output}`, () => {
      if (this.output.includes(text)) return true;
      if (this.#shell.exitCode !== null) throw new Error(`ended without ${text}:\n${this.output}`);
      return false;
    });
  }

  /** Whether its last command has ended. */
  get hasEnded(): boolean {
    return this.#shell.exitCode !== null || this.#shell.signalCode !== null;
  }

  /** Ctrl-C. */
  stop(): Promise<void> {
    return this.signal('SIGINT');
  }

  private async signal(signal: NodeJS.Signals): Promise<void> {
    const { pid, exitCode, signalCode } = this.#shell;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    process.kill(-pid, signal);
    await this.#ended;
  }
}

/** An example, read from top to bottom. */
export class Walkthrough {
  /** The copy's folder. */
  readonly folder: string;
  readonly stateDir: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #blocks: Block[];

  private constructor(scratch: string, folder: string, blocks: Block[]) {
    this.folder = join(scratch, folder);
    this.stateDir = join(scratch, 'state');
    const path = [join(scratch, 'bin'), process.env.PATH].join(delimiter);
    // A reader at a terminal is asked whether to trust the example; here it is named.
    const manifest = existsSync(join(this.folder, 'coxswain.yaml')) ? { COX_MANIFEST: 'coxswain.yaml' } : {};
    this.#env = cleanEnv({ PATH: path, COX_STATE_DIR: this.stateDir, ...manifest });
    this.#blocks = blocks;
  }

  /** Copies an example to where nothing else is, without what it was used for before. */
  static async of(name: string, kind: 'hooks' | 'crews' = 'hooks'): Promise<Walkthrough> {
    const scratch = await scratchFolder('example');
    const folder = join('examples', kind, name);
    const from = join(REPOSITORY, folder);
    await cp(from, join(scratch, folder), { recursive: true, filter: (path) => path !== join(from, 'work') });
    await symlink(join(REPOSITORY, 'node_modules'), join(scratch, 'node_modules'));
    // As in the checkout, whose own package is `coxswain`.
    await symlink(join(REPOSITORY, 'libs'), join(scratch, 'libs'));
    const { name: own, type, exports } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
    await writeFile(join(scratch, 'package.json'), JSON.stringify({ name: own, type, exports }));
    await writeCheckoutNpx(join(scratch, 'bin'));
    return new Walkthrough(scratch, folder, blocksOf(await readFile(join(from, 'README.md'), 'utf8')));
  }

  /**
   * Types the next block. What stays is left running when it is ready; anything else has ended, as the README says.
   * @param until it stays, and is ready when it has said this.
   */
  async next(until?: string): Promise<Typed> {
    const block = this.#blocks.shift();
    if (!block) throw new Error('the README has no more commands');
    const { commands, says } = block;
    // Readers begin in the checkout and stay where the first command takes them.
    const cwd = commands.startsWith('cd ') ? join(this.folder, '../../..') : this.folder;
    const typed = new Typed(commands, cwd, this.#env);
    if (until !== undefined) await typed.says(until);
    else if (/ cox (up|serve) .*$|cox up$/.test(commands)) await typed.says(STAYS);
    else await typed.end();
    expectLines(typed.output, says);
    return typed;
  }

  /** Types a line that the README has not. */
  async type(commands: string): Promise<{ readonly code: number | null; readonly output: string }> {
    const typed = this.begin(commands);
    const code = await typed.end();
    return { code, output: typed.output };
  }

  /** The same, of one that stays. */
  begin(commands: string): Typed {
    return new Typed(commands, this.folder, this.#env);
  }

  /** That everything was typed. */
  expectEnd(): void {
    expect(this.#blocks).toEqual([]);
  }
}

/** Fails unless the lines are there, in order, each somewhere in a line. */
export function expectLines(output: string, lines: readonly string[]): void {
  let rest = output;
  for (const line of lines) {
    const at = rest.indexOf(line);
    expect(at < 0 ? `not said, or not in this order: ${line}\n--- all of it:\n${output}` : '').toBe('');
    rest = rest.slice(at + line.length);
  }
}

function blocksOf(readme: string): Block[] {
  const [, tryIt = ''] = /^## Try it\n([\s\S]*?)^## /m.exec(readme) ?? [];
  const blocks: { commands: string; says: string[] }[] = [];
  for (const [, language, text = ''] of tryIt.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (language === 'sh') blocks.push({ commands: text.trimEnd(), says: [] });
    else blocks.at(-1)?.says.push(...text.trimEnd().split('\n'));
  }
  expect(blocks.length).toBeGreaterThan(0);
  return blocks;
}
