/** `cox session export`. */
import { once } from 'node:events';
import { withBusOnce } from '../../instance/open-bus.ts';
import { findSession } from '../../instance/resolve-session.ts';
import { EXIT } from '../../line/cli-error.ts';
import type { CommandRun } from '../../line/command-spec.ts';

/** Prints a journal as it is stored, one record a line, and what lies apart. Lines are canonical JSON: no line break stands in one. */
export const run: CommandRun = (invocation) =>
  withBusOnce(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    for await (const bytes of session.export({ recordsOnly: invocation.flags.on('records-only') })) {
      // A slow reader is waited for: the journal may be larger than the memory.
      if (!process.stdout.write(Buffer.concat([bytes, Buffer.from('\n')]))) await once(process.stdout, 'drain');
    }
    return EXIT.ok;
  });
