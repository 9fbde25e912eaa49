/** The programs in TypeScript that a guide shows, run as they stand. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Child, REPOSITORY } from './child.ts';

/** Those of one guide. */
export interface GuidePrograms {
  /** As the guide has them, in order. */
  readonly texts: readonly string[];
  /** Starts one of them, counted from 1. */
  start(number: number, env: NodeJS.ProcessEnv): Promise<Child>;
  /** Takes away what was written to start them. */
  remove(): Promise<void>;
}

/** Reads them. @param guide its name in docs/guides. */
export async function guidePrograms(guide: string): Promise<GuidePrograms> {
  const text = await readFile(join(REPOSITORY, 'docs/guides', guide), 'utf8');
  const texts = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, program]) => program ?? '');
  // Where the packages of the workspace are found, and nothing is kept.
  const folder = join(REPOSITORY, 'libs/client/dist/guide', String(process.pid));
  return {
    texts,
    start: async (number, env) => {
      await mkdir(folder, { recursive: true });
      const file = join(folder, `program-${number}.ts`);
      await writeFile(file, texts[number - 1] ?? '');
      return Child.ofSource(file, [], { env });
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
