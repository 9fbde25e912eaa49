/** `cox session import`. */
import { createReadStream } from 'node:fs';
import { SessionId } from '@coxswain/protocol';
import { callerFolder } from '../../folders/mod.ts';
import { reachedAt, withBusOnce } from '../../instance/mod.ts';
import { importTo, readableFile, unprovenTail } from '../../journals/mod.ts';
import { type CommandRun, EXIT, usageError } from '../../line/mod.ts';
import { standardStreams } from '../../terminal/mod.ts';

/** Creates a session from an exported journal. The whole journal is checked before a record is written. */
export const run: CommandRun = async (invocation) => {
  const { flags, env, args } = invocation;
  const as = flags.text('as');
  if (as !== undefined && !SessionId.safeParse(as).success)
    throw usageError('--as takes 1 to 64 characters of A-Z a-z 0-9 _ -');
  const name = args[0] === '-' ? 'standard input' : (args[0] as string);
  const { path, remove } = await readableFile(args[0] as string, callerFolder(env));
  try {
    return await withBusOnce(invocation, false, async (bus) => {
      const { tenant } = bus.client;
      const { linesOf } = await import('@coxswain/session');
      const lines = () => linesOf(createReadStream(path));
      const { ref, origin, records, isTailProven } = await importTo(
        reachedAt(bus),
        { name, lines, tenant, as },
        (text) => {
          if (flags.on('tenant')) standardStreams.err(text);
        },
      );
      const line = { type: 'imported', session_id: ref.sessionId, origin, records, tail_proven: isTailProven };
      standardStreams.out(flags.on('json') ? `${JSON.stringify(line)}\n` : `${ref.sessionId}\n`);
      if (!isTailProven) standardStreams.err(unprovenTail(name, records));
      return EXIT.ok;
    });
  } finally {
    await remove();
  }
};
