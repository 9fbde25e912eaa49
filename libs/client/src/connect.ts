/** Connects: to a bus, or to a gateway. */
import { readId, TenantId } from '@coxswain/protocol';
import { connect as connectNats } from '@nats-io/transport-node';
import { BusClient } from './bus-client.ts';
import { BusTransport } from './bus-transport.ts';
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
 * @throws when no server answers in time, or none lets this client in.
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
  const nc = await connectNats(natsOptions(bus));
  return new BusClient(new BusTransport({ nc, inboxPrefix: bus.inboxPrefix, actor: bus.actor }, tenant));
}
