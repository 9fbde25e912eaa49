/** `cox streams`. */
import { connectionTo, connectNats, ensureStreams } from '@coxswain/adapter-nats';
import { JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import { findBus } from '../instance/find-bus.ts';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';

const COUNT = JOURNAL_STREAMS.length + Object.keys(STREAMS).length;

/** Makes the streams of a bus and checks them: what only the admin may, where users have keys of their own. */
export const run: CommandRun = async ({ flags, env }) => {
  const replicas = flags.whole('replicas', { min: 1, max: 5 });
  const { address, stateDir } = await findBus(flags, env);
  if (!address) {
    const message = `nothing runs on ${stateDir}; name a bus with --nats or NATS_URL: hosts of this machine make their own`;
    throw new CliError(EXIT.error, 'not_running', message);
  }
  const nc = await connectNats({ ...connectionTo(address), name: 'cox-streams' });
  try {
    await ensureStreams(nc, { replicas });
  } finally {
    await nc.close();
  }
  if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'streams', count: COUNT })}\n`);
  else standardStreams.err(`${COUNT} streams and buckets are there, and as they have to be\n`);
  return EXIT.ok;
};
