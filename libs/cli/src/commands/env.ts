/** `cox env`. */
import { connectionUrl, parseConnectionUrl } from '@coxswain/adapter-nats';
import { findBus } from '../instance/find-bus.ts';
import { readGatewayFile } from '../instance/gateway-file.ts';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { shellQuoted } from '../line/shell-quoted.ts';
import { standardStreams } from '../terminal/streams.ts';

/** Prints shell lines that let bare NATS tools reach the bus, and `cox` in the same shell too; and HTTP clients the gateway. */
export const run: CommandRun = async (invocation) => {
  const { address, stateDir } = await findBus(invocation.flags, invocation.env);
  if (!address) {
    throw new CliError(EXIT.error, 'not_running', `nothing runs on ${stateDir}; start it with cox up`);
  }
  if (address.token === undefined) parseConnectionUrl(address.servers);
  const url =
    address.token === undefined ? address.servers : connectionUrl({ url: address.servers, token: address.token });
  const gateway = address.pid === undefined ? null : await readGatewayFile(stateDir, address.pid);
  const variables = {
    NATS_URL: url,
    ...(gateway ? { COX_GATEWAY_URL: gateway.url, COX_GATEWAY_TOKEN: gateway.token } : {}),
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`);
  standardStreams.out(invocation.flags.on('json') ? `${JSON.stringify(variables)}\n` : lines.join(''));
  return EXIT.ok;
};
