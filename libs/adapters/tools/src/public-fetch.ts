/** `fetch` for addresses in requests: for the public network only, and without following redirects. */
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';
import { publicLookup, refuseAddressInUrl } from './reachable-address.ts';
import { responseTo } from './response-to.ts';

/** Statuses whose responses have no body (Fetch standard, "null body status"). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/**
 * Creates a `fetch` with these differences:
 * - A host that is not on the public network is rejected, in the lookup of the connection itself.
 * - A redirect is returned as a response.
 * - A URL with a user name or password is rejected, and not quoted.
 *
 * The function throws a TypeError with the reason as its cause, as `fetch` does, or the reason of the signal.
 * @param privateAddresses whether hosts of private networks are allowed.
 */
export function createPublicFetch(privateAddresses = false): typeof globalThis.fetch {
  return async (input, init) => {
    const address = new URL(input instanceof Request ? input.url : input);
    if (address.username !== '' || address.password !== '') throw failed('the address has a user name or password');
    const { method, headers, signal, body } = new Request(input, init);
    try {
      if (!privateAddresses) refuseAddressInUrl(address);
      const sent = body === null ? null : Buffer.from(await new Response(body).arrayBuffer());
      const ask = address.protocol === 'https:' ? requestHttps : requestHttp;
      const length = sent === null ? {} : { 'content-length': String(sent.byteLength) };
      const request = ask(address, {
        method,
        signal,
        agent: false,
        headers: { ...Object.fromEntries(headers), ...length, 'accept-encoding': 'identity' },
        ...(privateAddresses ? {} : { lookup: publicLookup }),
      });
      const response = responseTo(request);
      request.end(sent ?? undefined);
      return responseOf(await response);
    } catch (error) {
      throw signal.aborted ? signal.reason : new TypeError('fetch failed', { cause: error });
    }
  };
}

function failed(why: string): TypeError {
  return new TypeError('fetch failed', { cause: new Error(why) });
}

/** @throws what `Response` throws, such as for the status 999. */
function responseOf(message: IncomingMessage): Response {
  const { statusCode: status = 502, statusMessage: statusText = '' } = message;
  try {
    const headers = new Headers();
    for (const [name, values = []] of Object.entries(message.headersDistinct))
      for (const value of values) headers.append(name, value);
    if (!WITHOUT_BODY.has(status))
      return new Response(Readable.toWeb(message) as ReadableStream<Uint8Array>, { status, statusText, headers });
    message.resume();
    return new Response(null, { status, statusText, headers });
  } catch (error) {
    // The server could keep the connection of an unread response open.
    message.destroy();
    throw error;
  }
}
