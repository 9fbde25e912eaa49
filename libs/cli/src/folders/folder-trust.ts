/**
 * Whether the user trusts the files of a folder that run code or loosen permissions. One answer covers one real path
 * and the content of its files, as in direnv: another folder or a changed byte needs another answer. Answers are stored
 * in the user's own state directory. They are never stored in the folder, or in a state directory named in a command
 * line, because either may come with the folder.
 */
import { createHash } from 'node:crypto';
import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { printable } from '@coxswain/client';
import { makeFolder, replaceFile, systemTrouble } from '@coxswain/ports/discovery';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import { cutGraphemes } from '@coxswain/protocol';
import * as z from 'zod';
import { CliError, EXIT } from '../line/mod.ts';
import { askYes, counted, standardStreams } from '../terminal/mod.ts';
import type { FileNeedingTrust } from './file-effects.ts';
import { defaultStateDir } from './state-dir.ts';

const ANSWER_MAX_BYTES = 1024 * 1024;
const LINES_MAX = 24;
const HEAD_CHARS = 120;
const TAIL_CHARS = 80;

/** The stored answer for one folder: the digests of the trusted files, keyed by their names. */
const Answer = z.strictObject({ folder: z.string(), trusted: z.record(z.string(), z.string()) });

/** The user's trust in one folder. */
export class FolderTrust {
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #mayAsk: boolean;

  /**
   * @param folder the user's working directory.
   * @param mayAsk whether the user may be asked at a terminal. False if standard input carries a protocol.
   */
  constructor(folder: string, env: NodeJS.ProcessEnv, mayAsk: boolean) {
    this.#folder = folder;
    this.#env = env;
    this.#mayAsk = mayAsk;
  }

  /**
   * Requires trust in a file of the folder. At a terminal, asks the user one question about all files of the folder
   * that need trust.
   * @throws CliError `folder_not_trusted`
   */
  async expect(needed: FileNeedingTrust): Promise<void> {
    if (await this.has(needed)) return;
    const folder = await realpath(this.#folder);
    const refused = (why: string) =>
      new CliError(EXIT.error, 'folder_not_trusted', `folder_not_trusted: ${join(folder, needed.name)} ${why}`);
    if (!this.#mayAsk || process.stdin.isTTY !== true || process.stderr.isTTY !== true)
      throw refused(
        `needs your trust, because it is new or has changed: run cox trust in ${folder}, or name the file by its path`,
      );
    const { filesNeedingTrust } = await import('./files-needing-trust.ts');
    const others = (await filesNeedingTrust(folder)).filter(({ name }) => name !== needed.name);
    const files = [needed, ...others].sort((one, other) => (one.name < other.name ? -1 : 1));
    standardStreams.err(describeEffects(folder, files));
    if (!(await askYes(QUESTION))) throw refused('is not trusted, and nothing was started');
    await this.trust(files);
  }

  /** Whether the user trusts the current content of a file of the folder. */
  async has({ name, digest }: Pick<FileNeedingTrust, 'name' | 'digest'>): Promise<boolean> {
    return (await this.#read())[name] === digest;
  }

  /**
   * Stores that the user trusts the current content of these files, and no other file of the folder. If the answer
   * cannot be stored, a notice is printed.
   * @returns whether it was stored.
   */
  async trust(files: readonly FileNeedingTrust[]): Promise<boolean> {
    const folder = await realpath(this.#folder);
    const trusted = Object.fromEntries(files.map(({ name, digest }) => [name, digest]));
    const file = await this.#file();
    try {
      await makeFolder(answersFolder(this.#env));
      await replaceFile(file, `${JSON.stringify({ folder, trusted })}\n`);
      return true;
    } catch (error) {
      // The answer applies to this command. The next command asks again.
      standardStreams.err(`the answer cannot be stored in ${file}: ${systemTrouble(error)}\n`);
      return false;
    }
  }

  /** Deletes the stored answer. */
  async forget(): Promise<void> {
    await rm(await this.#file(), { force: true });
  }

  async #read(): Promise<Readonly<Record<string, string>>> {
    const file = await this.#file();
    const read = await readRegularFile(file, ANSWER_MAX_BYTES).catch((error: unknown) => {
      if (!(error instanceof UnreadableFileError)) throw error;
      if (error.reason === 'not_found') return null;
      throw new CliError(EXIT.error, 'folder_not_trusted', `folder_not_trusted: ${file} ${error.message}`);
    });
    if (read === null) return {};
    let value: unknown;
    try {
      value = JSON.parse(read.bytes.toString('utf8'));
    } catch {
      // An invalid file grants nothing. The next answer replaces it.
    }
    const answer = Answer.safeParse(value);
    return answer.success && answer.data.folder === (await realpath(this.#folder)) ? answer.data.trusted : {};
  }

  async #file(): Promise<string> {
    const name = createHash('sha256')
      .update(await realpath(this.#folder))
      .digest('hex');
    return join(answersFolder(this.#env), `${name}.json`);
  }
}

/** The question after {@link describeEffects}. */
export const QUESTION = 'Trust the current content of this folder? A change requires a new answer.';

/**
 * Describes the files of a folder that need trust, for the user's decision. Text in the files cannot control the
 * terminal, hide lines or change the direction of letters.
 */
export function describeEffects(folder: string, files: readonly FileNeedingTrust[]): string {
  const lines = files.flatMap(({ name, effects }) => {
    const more = effects.length - LINES_MAX;
    return [
      `  ${shown(name)}`,
      ...effects.slice(0, LINES_MAX).map((line) => `    ${shown(line)}`),
      ...(more > 0 ? [`    and ${counted(more, 'line')} more`] : []),
    ];
  });
  return `${shown(folder)} contains code or permissions that need your trust:\n${lines.join('\n')}\n`;
}

/** Shortens a long text in the middle. Its end stays visible, so that padding cannot hide it. */
function shown(text: string): string {
  const line = printable(text.replaceAll(/[\s\p{Cf}]+/gu, ' '));
  if (line.length <= HEAD_CHARS + TAIL_CHARS) return line;
  const left = line.length - HEAD_CHARS - TAIL_CHARS;
  return `${cutGraphemes(line, HEAD_CHARS)} [${left} characters more] ${line.slice(-TAIL_CHARS)}`;
}

/** The folder with the stored answers, which sessions must not access. */
export function answersFolder(env: NodeJS.ProcessEnv): string {
  return join(defaultStateDir(env), 'trusted');
}
