/** Connects: to a bus, or to a gateway. */
import { readId, TenantId } from '@coxswain/protocol';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { connect as connectNats } from '@nats-io/transport-node';
import { BusClient } from './bus-client.ts';
import { BusTransport } from './bus-transport.ts';
import { CoxswainError, InvalidOptionError } from './client-errors.ts';
import { type ConnectOptions, natsOptions } from './connection-options.ts';
import { connect as connectHttp } from './http/connect.ts';
import type { GatewayOptions } from './http/gateway-options.ts';
import type { HttpClient } from './http/http-client.ts';

/**
 * Connects to a gateway: the same sessions over HTTP.
 * @throws GatewayUnreachableError when it does not answer in time, ReadRefusedError `unauthorized` when the token is invalid,
 *   InvalidOptionError.
 */
export function connect(options: GatewayOptions): Promise<HttpClient>;
/**
 * Connects to a bus.
 * @throws CoxswainError `nats_unreachable` when no server answers in time, or none accepts the credentials; InvalidOptionError.
 */
export function connect(options: ConnectOptions): Promise<BusClient>;
/** Either, where it is told at run time which. */
export function connect(options: ConnectOptions | GatewayOptions): Promise<BusClient | HttpClient>;
export async function connect(options: ConnectOptions | GatewayOptions): Promise<BusClient | HttpClient> {
  // Programs in JavaScript have no compiler that reports these.
  if (options?.gateway !== undefined && options.servers !== undefined)
    throw new InvalidOptionError('connect takes either servers or gateway, and not both', 'servers');
  if (options?.gateway !== undefined) return connectHttp(options);
  const bus = options as ConnectOptions;
  if (bus?.servers === undefined)
    throw new InvalidOptionError('connect takes { servers } for NATS, or { gateway, token } for HTTP', 'servers');
  const tenant = readId(TenantId, 'tenant', bus.tenant ?? 'default');
  const nc = await connectedNats(bus);
  return new BusClient(new BusTransport({ nc, inboxPrefix: bus.inboxPrefix, actor: bus.actor }, tenant));
}

/** A connection to NATS. The errors of its library have no code. */
async function connectedNats(options: ConnectOptions): Promise<NatsConnection> {
  try {
    return await connectNats(natsOptions(options));
  } catch (error) {
    if (error instanceof CoxswainError) throw error;
    const { message } = error as Error;
    if (error instanceof TypeError || error instanceof errors.InvalidArgumentError)
      throw new InvalidOptionError(`NATS cannot be connected to with these options: ${message}`, 'servers', {
        cause: error,
      });
    const why = `no NATS server accepts this client: ${message}`;
    throw new CoxswainError('nats_unreachable', why, { cause: error });
  }
}
