/** Scripts by path, parsed once. */
import { readFile, stat } from 'node:fs/promises';
import type { Failure } from '@coxswain/protocol';
import { parseScript, type Script, scriptInvalid } from './script.ts';

const SCRIPT_MAX_BYTES = 32 * 1024 * 1024;
const SCRIPTS_KEPT_MAX = 256;

interface Kept {
  readonly script: Script;
  readonly mtimeMs: number;
  readonly size: number;
}

/** Reads scripts and keeps them. */
export class ScriptStore {
  readonly #kept = new Map<string, Kept>();

  /** A script that was read before, without looking at the disk: an instant turn must stay instant. */
  kept(path: string): Script | undefined {
    return this.#kept.get(path)?.script;
  }

  /** Reads a script, afresh where its file has changed. `file` is its name for messages. Never rejects. */
  async load(path: string, file: string): Promise<Script | Failure> {
    try {
      const { mtimeMs, size } = await stat(path);
      const kept = this.#kept.get(path);
      if (kept && kept.mtimeMs === mtimeMs && kept.size === size) return kept.script;
      if (size > SCRIPT_MAX_BYTES) return scriptInvalid(file, `it has ${size} bytes, ${SCRIPT_MAX_BYTES} are allowed`);
      const script = parseScript(file, await readFile(path, 'utf8'));
      if ('code' in script) return script;
      if (this.#kept.size >= SCRIPTS_KEPT_MAX) this.#kept.clear();
      this.#kept.set(path, { script, mtimeMs, size });
      return script;
    } catch (error) {
      return scriptInvalid(file, `it cannot be read: ${(error as Error).message}`);
    }
  }
}
