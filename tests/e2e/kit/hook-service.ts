/** Hook services as processes of their own. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestBus } from './bus.ts';
import { Child, COX_MAIN } from './child.ts';
import { scratchFolder } from './scratch.ts';

/** Writes a module of handlers into a folder of its own. @returns its path. */
export async function policyFile(text: string, name = 'policy.ts'): Promise<string> {
  const path = join(await scratchFolder('policy'), name);
  await writeFile(path, text);
  return path;
}

/** Serves a module and waits until it is registered. */
export async function serveHooks(bus: TestBus, file: string, name: string): Promise<Child> {
  const child = new Child(COX_MAIN, ['serve', 'hooks', file, '--nats', bus.natsUrl, '--name', name, '--json']);
  await child.says('"type":"ready"');
  return child;
}
