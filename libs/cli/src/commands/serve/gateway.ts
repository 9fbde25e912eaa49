/** `cox serve gateway`. */
import { resolve } from 'node:path';
import { cutGraphemes } from '@coxswain/protocol';
import { callerFolder } from '../../folders/mod.ts';
import { type CommandRun, type Invocation, usageError } from '../../line/mod.ts';
import { consoleFolder, logTarget, serveUntilStopped } from '../../service/mod.ts';
import { standardStreams } from '../../terminal/mod.ts';
import { requireBus } from './serve.ts';

const DEFAULT_LISTEN = '127.0.0.1:7707';

/** Serves sessions over HTTP until it is stopped. Exits 2 without `--tokens` and `--jwks`. */
export const serveGateway: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const { host, port } = listenAddress(flags.text('listen') ?? DEFAULT_LISTEN);
  const tokens = flags.text('tokens');
  const jwt = await jwtOptions(flags, env);
  if (tokens === undefined && jwt === undefined)
    throw usageError(
      'cox serve gateway needs --tokens FILE, which cox admin token writes, or --jwks with --issuer and --audience',
    );
  const publicUrls = flags.inOrder(['public-url']).flatMap(({ value }) => publicUrlsIn(value));
  const allowedOrigins = flags.inOrder(['allow-origin']).map(({ value }) => siteOf(value));
  const { address, stateDir } = await requireBus(invocation);
  const { startGatewayService } = await import('@coxswain/gateway');
  return serveUntilStopped(
    { name: 'gateway', stateDir, title: ({ url }) => `the gateway ${url}` },
    () =>
      startGatewayService({
        nats: address,
        stateDir,
        log: logTarget(),
        host,
        port,
        publicUrls,
        allowedOrigins,
        tokensFile: tokens === undefined ? undefined : resolve(callerFolder(env), tokens),
        jwt,
        consoleFolder: consoleFolder(),
      }),
    (service) => {
      if (flags.on('json'))
        standardStreams.out(`${JSON.stringify({ type: 'ready', url: service.url, port: service.port })}\n`);
      else
        standardStreams.err(
          `the gateway serves ${service.url}, its routes are at ${service.url}/docs, its console at ${service.url}/; stop with Ctrl-C\n`,
        );
    },
  );
};

/** Maximum number of ports in one address. */
const PORTS_MAX = 64;

/**
 * Expands a range of ports in `--public-url`, one address per instance: `http://localhost:7707-7709` names three.
 * @throws CliError with exit code 2 for an invalid range.
 */
export function publicUrlsIn(text: string): readonly string[] {
  const [, before, first, last] = /^(https?:\/\/[^/]+):(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  if (before === undefined) return [text];
  const count = Number(last) - Number(first) + 1;
  if (count < 1 || count > PORTS_MAX || Number(last) > 65_535)
    throw usageError(`--public-url takes a range of 1 to ${PORTS_MAX} ports, not "${first}-${last}"`);
  return Array.from({ length: count }, (_, at) => `${before}:${Number(first) + at}`);
}

/**
 * Parses `HOST:PORT`, `:PORT` for all IPv4 addresses, or `PORT` for loopback. IPv6 addresses need brackets. @throws
 * CliError with exit code 2 for another format.
 */
export function listenAddress(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, number] = /^(?:(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(number);
  if (number === undefined || port > 65_535)
    throw usageError(`--listen takes HOST:PORT, such as 0.0.0.0:7707, not "${cutGraphemes(text, 80)}"`);
  const host = bracketed ?? plain;
  return { host: host === undefined ? '127.0.0.1' : host === '' ? '0.0.0.0' : host, port };
}

async function jwtOptions(flags: Invocation['flags'], env: NodeJS.ProcessEnv) {
  const [jwks, issuer, audience] = [flags.text('jwks'), flags.text('issuer'), flags.text('audience')];
  if (jwks === undefined && issuer === undefined && audience === undefined) return undefined;
  if (jwks === undefined || issuer === undefined || audience === undefined)
    throw usageError(
      '--jwks, --issuer and --audience are needed together: a token is valid only from its issuer and for its audience',
    );
  const { keyAddressOf } = await import('@coxswain/gateway');
  let isAddress: boolean;
  try {
    isAddress = keyAddressOf(jwks) !== null;
  } catch (error) {
    throw usageError((error as Error).message);
  }
  return {
    jwks: isAddress ? jwks : resolve(callerFolder(env), jwks),
    issuer,
    audience,
    tenantClaim: flags.text('tenant-claim'),
  };
}

function siteOf(text: string): string {
  if (URL.canParse(text) && new URL(text).origin === text.replace(/\/$/, '')) return new URL(text).origin;
  throw usageError(`--allow-origin takes a site, such as https://app.example.com, not "${cutGraphemes(text, 120)}"`);
}
