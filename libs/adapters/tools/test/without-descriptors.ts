/** A process that starts a command while it has no free file descriptor, and again after that. */
import { closeSync, openSync } from 'node:fs';
import { runInGroup } from '../src/process-group.ts';

const run = async (): Promise<string> => {
  const command = { file: '/bin/sh', args: ['-c', 'exit 7'], cwd: '/', env: {}, timeoutMs: 60_000 };
  const end = await runInGroup({ ...command, onOutput: () => undefined }, new AbortController().signal);
  return `exit ${end.exitCode}`;
};
// A first run loads what Node loads late.
const lines = [await run()];
const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // No descriptor is free.
}
lines.push(await run().catch((error: Error) => error.message));
for (const fd of taken) closeSync(fd);
lines.push(await run());
process.stdout.write(lines.join('\n'));
