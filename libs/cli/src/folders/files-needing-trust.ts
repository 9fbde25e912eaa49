/** Collects the files of a folder that need trust, for a single question. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type FileNeedingTrust, manifestOfFolder, personaOfFolder } from './file-effects.ts';
import { MANIFEST_FILE } from './manifest.ts';
import { PERSONAS_FOLDER, personaPaths, readPersona, whatLiesAt } from './persona-file.ts';

/** Maximum number of personas that are read in a folder. */
const PERSONAS_MAX = 64;

/** All files in a folder that need trust, the manifest first. */
export async function filesNeedingTrust(folder: string): Promise<FileNeedingTrust[]> {
  const files: FileNeedingTrust[] = [];
  const manifest = join(folder, MANIFEST_FILE);
  if (existsSync(manifest)) {
    const one = await manifestOfFolder(manifest).catch(unlessInvalid);
    if (one !== null) files.push(one);
  }
  const personas = join(folder, PERSONAS_FOLDER);
  if ((await whatLiesAt(personas)) !== 'folder of personas') return files;
  for (const path of (await personaPaths(personas)).slice(0, PERSONAS_MAX)) {
    const one = await readPersona(path)
      .then((file) => personaOfFolder(path, file))
      .catch(unlessInvalid);
    if (one !== null) files.push(one);
  }
  return files;
}

/** Commands cannot use an invalid file, so it needs no trust. */
function unlessInvalid(error: unknown): null {
  const { code } = error as { readonly code?: unknown };
  if (code === 'manifest_invalid' || code === 'usage') return null;
  throw error;
}
