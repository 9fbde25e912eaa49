/**
 * The sessions that the console of this machine's own gateway offers to start: personas of the folder, and the demo.
 */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { StartOffers } from '@coxswain/gateway';
import {
  callerFolder,
  FolderTrust,
  PERSONAS_FOLDER,
  personaOfFolder,
  personaPaths,
  readPersona,
  whatLiesAt,
} from '../folders/mod.ts';

/** Maximum number of offered personas. */
const OFFERED_MAX = 64;
/** Number of demos whose files are kept: a session may still use them. */
const DEMOS_MAX = 8;

/**
 * Builds the offers.
 * @param env names the user's working directory. Its personas are read for each request, so that edits are visible.
 * @param demos the folder for the files of demos; null if the session hosts may be on other machines.
 */
export function startOffersOf(env: NodeJS.ProcessEnv, demos: string | null): StartOffers {
  const folder = callerFolder(env);
  const trust = new FolderTrust(folder, env, false);
  return {
    options: async () => ({ folder, personas: await personasIn(folder, trust), has_demo: demos !== null }),
    prepareDemo: demos === null ? null : () => prepareDemo(demos),
  };
}

async function personasIn(
  folder: string,
  trust: FolderTrust,
): Promise<Awaited<ReturnType<StartOffers['options']>>['personas']> {
  const path = join(folder, PERSONAS_FOLDER);
  if ((await whatLiesAt(path)) !== 'folder of personas') return [];
  const paths = (await personaPaths(path)).slice(0, OFFERED_MAX);
  return Promise.all(
    paths.map(async (file) => {
      try {
        const read = await readPersona(file);
        const brought = personaOfFolder(file, read);
        if (brought !== null) await trust.expect(brought);
        const { persona, input } = read;
        const { name, description = null, model } = persona;
        const named = typeof model === 'object' ? model.name : (model ?? null);
        return { name, description, model: named, definition: input as Record<string, unknown>, problem: null };
      } catch (error) {
        const name = basename(file).replace(/\.(ya?ml|json)$/, '');
        return {
          name,
          description: null,
          model: null,
          definition: null,
          problem: (error as Error).message.replace(/^persona /, ''),
        };
      }
    }),
  );
}

async function prepareDemo(demos: string): Promise<Awaited<ReturnType<NonNullable<StartOffers['prepareDemo']>>>> {
  await mkdir(demos, { recursive: true, mode: 0o700 });
  const before = await Promise.all(
    (await readdir(demos)).map(async (name) => {
      const path = join(demos, name);
      return { path, atMs: (await stat(path)).mtimeMs };
    }),
  );
  const old = before.sort((a, b) => b.atMs - a.atMs).slice(DEMOS_MAX - 1);
  await Promise.all(old.map(({ path }) => rm(path, { recursive: true, force: true })));
  const { writeStory } = await import('../demo/story.ts');
  const { prompt, root, model, persona } = (await writeStory(demos)).body;
  return { prompt, root, model, persona: persona as Record<string, unknown> };
}
