/** The gateway of `cox up` for its user, on loopback. */
import type { LogTarget } from '@coxswain/adapter-log';
import type { NamedBus } from '@coxswain/adapter-nats';
import type { GatewayService, StartOffers } from '@coxswain/gateway';
import { CliError, EXIT, type Flags, usageError } from '../line/mod.ts';
import { consoleAddress, consoleFolder } from './console-folder.ts';

const GATEWAY_HOST = '127.0.0.1';

/** Options that are known before the gateway runs. */
export interface OwnGatewayOptions {
  readonly nats: NamedBus;
  readonly stateDir: string;
  readonly log: LogTarget;
  /** The sessions that its console offers to start. */
  readonly starts: StartOffers;
}

/**
 * The port in `--gateway-port`; 0 without the flag, null with `--no-gateway`. @throws CliError with exit code 2 if both
 * are given.
 */
export function ownGatewayPort(flags: Flags): number | null {
  const port = flags.whole('gateway-port', { min: 1, max: 65_535 });
  if (!flags.on('no-gateway')) return port ?? 0;
  if (port !== undefined) throw usageError('--gateway-port and --no-gateway exclude each other');
  return null;
}

/**
 * Checks the port in `--gateway-port` before anything starts: the gateway itself listens last.
 * @param port null, and 0, need no check.
 * @throws ListenPortInUseError; GatewayOptionError.
 */
export async function expectGatewayPort(port: number | null): Promise<void> {
  if (!port) return;
  const { expectListenable } = await import('@coxswain/gateway');
  await expectListenable(GATEWAY_HOST, port);
}

/**
 * Starts the gateway; null if `port` is null.
 * @param port 0 for a free one.
 * @param kept the tokens of an earlier start, which stay valid. Default: new tokens.
 * @throws ListenPortInUseError for a port in use.
 */
export async function startOwnGateway(
  port: number | null,
  options: OwnGatewayOptions,
  kept?: { readonly token: string; readonly readToken: string },
): Promise<GatewayService | null> {
  if (port === null) return null;
  const { startGatewayService } = await import('@coxswain/gateway');
  const startToken = { name: userName(), kept };
  return startGatewayService({ ...options, host: GATEWAY_HOST, port, startToken, consoleFolder: consoleFolder() });
}

/** Options of a read-only gateway for one command that shows a session. */
export interface ViewerOptions {
  readonly nats: NamedBus;
  readonly stateDir: string;
  readonly tenant: string;
  /** Default: a free port. */
  readonly port?: number | undefined;
}

/** Starts a viewer on loopback, with a new read-only token. @throws CliError `console_not_built`. */
export async function startViewer({ nats, stateDir, tenant, port }: ViewerOptions): Promise<GatewayService> {
  const { startGatewayService } = await import('@coxswain/gateway');
  const viewer = await startGatewayService({
    nats,
    stateDir,
    log: 'file',
    port,
    startToken: { tenant, name: userName(), scopes: ['read'] },
    consoleFolder: consoleFolder(),
  });
  if (viewer.hasConsole) return viewer;
  await viewer.stop();
  throw new CliError(
    EXIT.error,
    'console_not_built',
    'console_not_built: this installation has no web console; build it with npm run prepare, or use --json',
  );
}

function userName(): string {
  return process.env.USER?.trim() || process.env.LOGNAME?.trim() || 'local';
}

/**
 * The lines with the addresses of the gateway. Only a terminal gets the address with the token, because other output
 * may be logged. Without the token, the page asks for it.
 */
export function gatewayLines({ url, token, hasConsole }: GatewayService, isTerminal: boolean): string {
  const routes = `over HTTP: ${url}, its routes at ${url}/docs\n`;
  if (!hasConsole) return routes;
  const console = isTerminal ? consoleAddress({ url, token }) : `${url}/ (asks for the token)`;
  return `console: ${console}\n${routes}`;
}
