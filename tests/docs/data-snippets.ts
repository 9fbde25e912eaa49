/** Which reader a block of YAML is for, and what that says of it: the readers of the program itself. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inspectManifest } from '@coxswain/adapter-hooks';
import { readPrices } from '@coxswain/adapter-models';
import { readPersonaFile } from '@coxswain/personas/persona-file';
import { readPolicyFile } from '@coxswain/sessions';
import { parse, stringify } from 'yaml';
import { parseScript } from '../../libs/adapters/models/src/scripted/script.ts';

/** What a block is. */
export type DataKind = 'script' | 'manifest' | 'prices' | 'persona' | 'part of a persona' | 'policy' | 'prometheus';

/** By its keys. A block of which only pieces are shown is a part of a persona. */
export function kindOf(text: string): DataKind {
  const data = (parse(text) ?? {}) as { readonly tools?: readonly unknown[] };
  const keys = Object.keys(data);
  if (keys.includes('turns')) return 'script';
  if (keys.includes('prices')) return 'prices';
  if (keys.includes('scrape_configs')) return 'prometheus';
  if (keys.includes('trust_bus')) return 'policy';
  if (keys.includes('name')) return 'persona';
  // A persona names its tools; a manifest says where they are.
  if (Array.isArray(data.tools) && data.tools.some((tool) => typeof tool === 'object')) return 'manifest';
  return keys.length === 1 && keys[0] === 'hooks' ? 'manifest' : 'part of a persona';
}

/** @returns what is wrong with it; null where nothing is. */
export async function wrongData(text: string): Promise<string | null> {
  const kind = kindOf(text);
  // Another program reads it.
  if (kind === 'prometheus') return null;
  if (kind === 'script') {
    const script = await parseScript('page.yaml', text);
    return 'turns' in script ? null : script.message;
  }
  const folder = await mkdtemp(join(tmpdir(), 'cox-page-'));
  try {
    const file = join(folder, 'page.yaml');
    await writeFile(file, kind === 'part of a persona' ? stringify({ name: 'page', ...parse(text) }) : text);
    if (kind === 'prices') await readPrices(file);
    else if (kind === 'policy') await readPolicyFile(file);
    else if (kind === 'manifest') {
      await standIns(folder, text);
      await inspectManifest(file);
    } else {
      await standIns(folder, text);
      await readPersonaFile(file);
    }
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What a page says lies beside its file: modules of handlers, and skills. */
async function standIns(folder: string, text: string): Promise<void> {
  for (const [, path = ''] of text.matchAll(/(\.\/[\w./-]+\.[cm]?[jt]s)/g)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, 'export default () => true;\n');
  }
  const { skills = [] } = (parse(text) ?? {}) as { readonly skills?: readonly string[] };
  for (const skill of skills) {
    const at = skill.startsWith('.') ? join(folder, skill) : join(folder, 'skills', skill);
    await mkdir(at, { recursive: true });
    const name = skill.split('/').at(-1);
    await writeFile(join(at, 'SKILL.md'), `---\nname: ${name}\ndescription: A stand-in.\n---\nA stand-in.\n`);
  }
}
