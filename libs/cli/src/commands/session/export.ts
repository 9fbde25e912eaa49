/** `cox session export`. */
import { once } from 'node:events';
import { findSession, withBusOnce } from '../../instance/mod.ts';
import { type CommandRun, EXIT } from '../../line/mod.ts';

/**
 * Prints a journal as it is stored, one record per line, with the content that is stored outside of it. Lines are
 * canonical JSON without line breaks.
 */
export const run: CommandRun = (invocation) =>
  withBusOnce(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    for await (const bytes of session.export({ recordsOnly: invocation.flags.on('records-only') })) {
      // Waits for a slow reader: the journal may be larger than the memory.
      if (!process.stdout.write(Buffer.concat([bytes, Buffer.from('\n')]))) await once(process.stdout, 'drain');
    }
    return EXIT.ok;
  });
