/** Connects to a gateway. */
import { readId, TenantId } from '@coxswain/protocol';
import { CoxswainError } from '../client-errors.ts';
import { refuseUnknown } from '../command-form.ts';
import { checkTime } from '../option-checks.ts';
import { GATEWAY_OPTIONS, type GatewayOptions } from './gateway-options.ts';
import { GatewayRequests } from './gateway-requests.ts';
import { HttpClient } from './http-client.ts';
import { HttpTransport, readHolder } from './http-transport.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connects to a gateway. No connection stays open between requests: the gateway has answered once and accepts the
 * token.
 * @throws GatewayUnreachableError if it does not respond in time, ReadRefusedError `unauthorized` if the token is
 *   invalid, InvalidOptionError for an invalid address, token or time. CoxswainError `transport_unavailable` without a
 *   `gateway`.
 */
export async function connect(options: GatewayOptions): Promise<HttpClient> {
  if (options?.gateway === undefined)
    throw new CoxswainError('transport_unavailable', 'this client supports only a gateway: give `gateway` and `token`');
  refuseUnknown(options, GATEWAY_OPTIONS);
  checkTime('connectTimeoutMs', options.connectTimeoutMs);
  const requests = new GatewayRequests(options);
  const { tenant } = await readHolder(requests, options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS);
  return new HttpClient(new HttpTransport(requests, readId(TenantId, 'tenant', tenant)));
}
