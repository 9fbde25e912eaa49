/** Connects to NATS or to a gateway. */
import process from 'node:process';
import { readId, TenantId } from '@coxswain/protocol';
import { BusClient } from './bus-client.ts';
import { BusTransport } from './bus-transport.ts';
import type { Client } from './client.ts';
import { CoxswainError, InvalidOptionError } from './client-errors.ts';
import { refuseUnknown } from './command-form.ts';
import { connectedNats } from './connected-nats.ts';
import { CONNECT_OPTIONS, type ConnectOptions } from './connection-options.ts';
import { connect as connectHttp } from './http/connect.ts';
import { GATEWAY_OPTIONS, type GatewayOptions } from './http/gateway-options.ts';
import type { HttpClient } from './http/http-client.ts';

/**
 * Connects as the environment says. The first of these applies, as for `cox`:
 * - `NATS_URL` with `NATS_NKEY`
 * - `COX_GATEWAY_URL` with `COX_GATEWAY_TOKEN`
 * - the instance of `COX_STATE_DIR`
 * - the current context
 * - the `cox up` of the default state directory
 * @throws CoxswainError `bus_not_found` if none of them is set; the errors of the other overloads.
 */
export function connect(): Promise<Client>;
/**
 * Connects to a gateway, for the same sessions over HTTP.
 * @throws GatewayUnreachableError if it does not respond in time, ReadRefusedError `unauthorized` if the token is
 *   invalid, InvalidOptionError.
 */
export function connect(options: GatewayOptions): Promise<HttpClient>;
/**
 * Connects to NATS.
 * @throws CoxswainError `nats_unreachable` if no server responds in time or accepts the credentials;
 *   InvalidOptionError.
 */
export function connect(options: ConnectOptions): Promise<BusClient>;
/** Connects to NATS or to a gateway, depending on the options. */
export function connect(options: ConnectOptions | GatewayOptions): Promise<BusClient | HttpClient>;
export async function connect(...given: [options?: ConnectOptions | GatewayOptions]): Promise<Client> {
  // `connect(undefined)` is a program without its options: it must not connect to another bus.
  if (given.length === 0) return connect(await discovered(process.env));
  const options = given[0] as ConnectOptions | GatewayOptions;
  if (typeof options === 'string' || Array.isArray(options))
    throw new InvalidOptionError(
      'connect takes an object: connect({ servers }) or connect({ gateway, token })',
      'options',
    );
  // Programs in JavaScript have no compiler that reports this.
  if (options?.gateway !== undefined && options.servers !== undefined)
    throw new InvalidOptionError('connect takes either servers or gateway, not both', 'servers');
  if (options?.gateway !== undefined) return connectHttp(options);
  const bus = options as ConnectOptions;
  if (bus?.servers === undefined) {
    const given = Object(options) as object;
    refuseUnknown(given, { ...CONNECT_OPTIONS, ...GATEWAY_OPTIONS });
    // An unset variable is the usual mistake.
    const unset = ['servers', 'gateway'].find((name) => Object.hasOwn(given, name));
    const takes = 'connect takes { servers } for NATS, or { gateway, token } for HTTP';
    throw new InvalidOptionError(unset === undefined ? takes : `${unset} is undefined: ${takes}`, unset ?? 'servers');
  }
  refuseUnknown(bus, CONNECT_OPTIONS);
  const tenant = readId(TenantId, 'tenant', bus.tenant ?? 'default');
  const nc = await connectedNats(bus);
  return new BusClient(new BusTransport({ nc, actor: bus.actor }, tenant));
}

/** Connection options from the environment. */
async function discovered(env: NodeJS.ProcessEnv): Promise<ConnectOptions | GatewayOptions> {
  const gateway = env.COX_GATEWAY_URL?.trim();
  if (gateway && !env.NATS_URL?.trim()) {
    const token = env.COX_GATEWAY_TOKEN?.trim();
    if (!token) throw new InvalidOptionError('COX_GATEWAY_URL is set, and COX_GATEWAY_TOKEN is not', 'token');
    return { gateway, token };
  }
  const { findBus } = await import('@coxswain/ports/discovery');
  const { address, stateDir } = await findBus({}, env);
  if (address) {
    const { servers, token, credentials, context } = address;
    return { servers, token, ...credentials, tenant: context?.tenant ?? credentials?.tenant };
  }
  throw new CoxswainError(
    'bus_not_found',
    `no cox up runs on ${stateDir}, and neither NATS_URL, COX_GATEWAY_URL nor a context is set: start cox up, or name the bus with ` +
      'connect({ servers }) or connect({ gateway, token })',
  );
}
