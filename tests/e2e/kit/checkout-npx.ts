/** `npx` as it works in a checkout, without its request to a registry. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REPOSITORY, SHORT_LIVED } from './child.ts';

/**
 * Writes a program `npx` that runs what the checkout has in `node_modules/.bin`. `cox` gets the flags of processes that live for
 * seconds.
 * @param bin the folder of the program; it is made.
 */
export async function writeCheckoutNpx(bin: string): Promise<void> {
  const program = join(bin, 'npx');
  await mkdir(bin, { recursive: true });
  await writeFile(
    program,
    `#!/bin/sh
bin='${REPOSITORY}/node_modules/.bin/'$1
node=
[ "$1" != cox ] || node='node ${SHORT_LIVED.join(' ')}'
shift
exec $node "$bin" "$@"
`,
  );
  await chmod(program, 0o755);
}
