/** Connects: to a bus, or to a gateway. */
import { readId, TenantId } from '@coxswain/protocol';
import { errors } from '@nats-io/nats-core';
import { connect as connectNats } from '@nats-io/transport-node';
import { BusClient } from './bus-client.ts';
import { BusTransport } from './bus-transport.ts';
import { ClientError } from './client-errors.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import { connect as connectHttp } from './http/connect.ts';
import type { GatewayOptions } from './http/gateway-options.ts';
import type { HttpClient } from './http/http-client.ts';

/**
 * Connects to a gateway: the same sessions over HTTP.
 * @throws GatewayUnreachableError when it does not answer in time, ClientError `unauthorized` when the token is none.
 */
export function connect(options: GatewayOptions): Promise<HttpClient>;
/**
 * Connects to a bus.
 * @throws ClientError `nats_unreachable` when no server answers in time, or none lets this client in; TypeError or the library's
 *   InvalidArgumentError where an option cannot be one.
 */
export function connect(options: ConnectOptions): Promise<BusClient>;
/** Either, where it is told at run time which. */
export function connect(options: ConnectOptions | GatewayOptions): Promise<BusClient | HttpClient>;
export async function connect(options: ConnectOptions | GatewayOptions): Promise<BusClient | HttpClient> {
  if (options && 'gateway' in options && options.gateway !== undefined) return connectHttp(options);
  const bus = options as ConnectOptions;
  // Whoever writes JavaScript is not told by a compiler.
  if (bus?.servers === undefined)
    throw new TypeError('connect takes { servers } for a bus, or { gateway, token } for sessions over HTTP');
  const tenant = readId(TenantId, 'tenant', bus.tenant ?? 'default');
  const nc = await connectNats(natsOptions(bus)).catch((error: unknown) => {
    throw unjoined(error);
  });
  return new BusClient(new BusTransport({ nc, inboxPrefix: bus.inboxPrefix, actor: bus.actor }, tenant));
}

/** What the library throws where nobody lets it in has no code; what is wrong with an option is thrown as it is. */
function unjoined(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof errors.InvalidArgumentError)
    return error;
  return new ClientError('nats_unreachable', `no NATS server lets this client in: ${error.message}`, { cause: error });
}
