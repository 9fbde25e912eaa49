/** `cox env`. */
import { connectionUrl, parseConnectionUrl } from '@coxswain/adapter-nats';
import { readConnection } from '@coxswain/ports/discovery';
import { type BusAddress, findBus } from '../connection/mod.ts';
import { CliError, type CommandRun, EXIT, shellQuoted } from '../line/mod.ts';
import { readGatewayFile } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/**
 * Prints shell lines that let NATS tools and `cox` reach the bus, and HTTP clients reach the gateway. Exits 1 for
 * `not_running`.
 */
export const run: CommandRun = async (invocation) => {
  const { address, stateDir } = await findBus(invocation.flags, invocation.env);
  if (!address) {
    throw new CliError(EXIT.error, 'not_running', `no instance of cox up runs in ${stateDir}; start one with cox up`);
  }
  if (address.token === undefined) parseConnectionUrl(address.servers);
  const url =
    address.token === undefined ? address.servers : connectionUrl({ url: address.servers, token: address.token });
  const pid = address.source === 'NATS_URL' ? await inheritedServer(url, stateDir) : address.pid;
  const gateway = pid === undefined ? null : await readGatewayFile(stateDir, pid);
  const variables = {
    NATS_URL: url,
    ...(address.context?.nkey === undefined ? {} : { NATS_NKEY: address.context.nkey }),
    ...(gateway ? { COX_GATEWAY_URL: gateway.url, COX_GATEWAY_TOKEN: gateway.token } : {}),
  };
  if (address.context) standardStreams.err(`of the context ${address.context.name}\n`);
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`);
  standardStreams.out(invocation.flags.on('json') ? `${JSON.stringify(variables)}\n` : lines.join(''));
  return EXIT.ok;
};

/**
 * The process id of the state directory's instance if NATS_URL is its address, set by an earlier `cox env`. If the
 * instance has another address, as after a restart, NATS_URL may be outdated: this prints a warning.
 */
async function inheritedServer(inherited: string, stateDir: string): Promise<BusAddress['pid']> {
  // NATS_URL names the bus, so an unreadable state directory does not matter.
  const running = await readConnection(stateDir).catch(() => undefined);
  if (!running) return undefined;
  if (connectionUrl(running) === inherited) return running.pid;
  standardStreams.err(
    `NATS_URL is set in this shell, so this prints its value; the instance of ${stateDir} is at ${running.url}: ` +
      `unset NATS_URL, or cox env --state-dir ${shellQuoted(stateDir)}\n`,
  );
  return undefined;
}
