/** `cox env`. */
import { connectionUrl, parseConnectionUrl } from '@coxswain/adapter-nats';
import { findBus } from '../instance/find-bus.ts';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { shellQuoted } from '../line/shell-quoted.ts';
import { standardStreams } from '../terminal/streams.ts';

/** Prints shell lines that let bare NATS tools reach the bus, and `cox` in the same shell too. */
export const run: CommandRun = async (invocation) => {
  const { address, stateDir } = await findBus(invocation.flags, invocation.env);
  if (!address) {
    throw new CliError(EXIT.error, 'not_running', `nothing runs on ${stateDir}; start it with cox up`);
  }
  if (address.token === undefined) parseConnectionUrl(address.servers);
  const url =
    address.token === undefined ? address.servers : connectionUrl({ url: address.servers, token: address.token });
  standardStreams.out(
    invocation.flags.on('json') ? `${JSON.stringify({ NATS_URL: url })}\n` : `export NATS_URL=${shellQuoted(url)}\n`,
  );
  return EXIT.ok;
};
