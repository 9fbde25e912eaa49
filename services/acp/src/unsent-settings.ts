/**
 * Settings that editors chose and no journal has yet: sessions without a first prompt, and a model or mode chosen for a
 * session's next run. The state directory has one file per session, so that every `cox acp` of this machine loads the
 * same settings.
 *
 * - UNSENT-1: A request is answered only after the file is written.
 * - UNSENT-2: The journal wins. A choice is restored only while the session still has the setting that it replaces.
 */
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@coxswain/ports/discovery';
import { McpServers, SessionId } from '@coxswain/protocol';
import * as z from 'zod';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { writeDiagnostic } from './diagnostics.ts';
import { cannotSave } from './request-errors.ts';

const Choice = z.strictObject({ model: z.string().optional(), mode: z.string().optional() });
const Unsent = z.strictObject({
  v: z.literal(1),
  /** The parameters of `session/new`; null for a session on the bus. */
  created: z.strictObject({ cwd: z.string(), mcp_servers: McpServers }).nullable(),
  chosen: Choice,
  /** The settings of the session when the choice was made; null for a session without a first prompt. */
  replaces: Choice.nullable(),
});

/** A model and a mode by name. `mode` is undefined for the persona without a mode. */
export type Choice = z.infer<typeof Choice>;
/** The content of one file, without its version. */
export type Unsent = Omit<z.infer<typeof Unsent>, 'v'>;

/** The files in one state directory. */
export class UnsentSettings {
  readonly #folder: string;
  #writing: Promise<unknown> = Promise.resolve();
  #isPruned = false;

  /**
   * @param folder created with the first file, readable only by its owner: MCP servers may have keys in their
   * variables.
   */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads the saved settings of a session. @returns null if there are none. An unreadable file is reported on standard
   * error and ignored.
   */
  async read(id: string): Promise<Unsent | null> {
    if (!SessionId.safeParse(id).success) return null;
    const file = this.#file(id);
    try {
      const { v: _, ...unsent } = Unsent.parse(JSON.parse(await readFile(file, 'utf8')));
      return unsent;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        writeDiagnostic(`ignoring ${file}: ${(error as Error).message}`);
      return null;
    }
  }

  /**
   * Writes or removes the file of a session. Writes of one process keep their order.
   * @param now called when the write starts; null removes the file.
   * @throws RequestError naming the folder and the system's error.
   */
  async save(id: string, now: () => Unsent | null): Promise<void> {
    const saved = this.#writing.then(() => this.#save(id, now()));
    this.#writing = saved.catch(() => undefined);
    try {
      await saved;
    } catch (error) {
      throw cannotSave(this.#folder, error as Error);
    }
  }

  async #save(id: string, unsent: Unsent | null): Promise<void> {
    const file = this.#file(id);
    if (unsent === null) {
      await rm(file, { force: true });
      return;
    }
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!this.#isPruned) await this.#prune();
    this.#isPruned = true;
    await replaceFile(file, JSON.stringify({ v: 1, ...unsent }));
  }

  /**
   * Removes files that are too old, and the oldest ones above the limit. Most editors open sessions that they never
   * prompt.
   */
  async #prune(): Promise<void> {
    const oldestMs = Date.now() - ACP_BOUNDS.unsentKeptMs;
    const files = (await readdir(this.#folder)).map((name) => join(this.#folder, name));
    const found = await Promise.all(
      // Another `cox acp` may have removed the file meanwhile.
      files.map(async (file) => ({ file, atMs: (await stat(file).catch(() => null))?.mtimeMs ?? 0 })),
    );
    const newestFirst = found.sort((a, b) => b.atMs - a.atMs);
    const old = newestFirst.filter(({ atMs }, index) => atMs < oldestMs || index >= ACP_BOUNDS.unsentMax - 1);
    await Promise.all(old.map(({ file }) => rm(file, { force: true })));
  }

  #file(id: string): string {
    return join(this.#folder, `${SessionId.parse(id)}.json`);
  }
}
