/**
 * Extracts the bearer token of a request from its headers. A token in the URL is not accepted, because URLs end up in
 * logs, histories and the headers of other requests.
 *
 * A web page cannot set headers of a WebSocket, so it offers the token as a subprotocol `bearer.TOKEN`. A program that
 * has only a WebSocket's URL puts the token there as a password; its client sends that as HTTP basic authentication.
 */
import type { IncomingHttpHeaders } from 'node:http';

/** The subprotocol of Coxswain's WebSockets. */
export const SOCKET_PROTOCOL = 'coxswain.v1';
const OFFERED = 'bearer.';
const TOKEN_MAX_CHARS = 8_192;

/** The token of a request; null if there is none, or it is longer than 8,192 characters. */
export function bearerOf(headers: IncomingHttpHeaders): string | null {
  const { authorization } = headers;
  const token =
    /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1] ?? offeredToken(headers) ?? passwordToken(headers);
  return token === undefined || token.length > TOKEN_MAX_CHARS ? null : token;
}

function isSocketUpgrade({ upgrade }: IncomingHttpHeaders): boolean {
  return upgrade?.toLowerCase() === 'websocket';
}

function offeredToken(headers: IncomingHttpHeaders): string | undefined {
  const { authorization, 'sec-websocket-protocol': protocols } = headers;
  if (!isSocketUpgrade(headers) || authorization !== undefined) return undefined;
  const names = (protocols ?? '').split(',').map((name) => name.trim());
  return names.find((name) => name.startsWith(OFFERED))?.slice(OFFERED.length);
}

/**
 * The password of basic authentication, only for WebSockets. Browsers always send the origin of a page that opens a
 * WebSocket. So a page of another site cannot use credentials that the browser adds. The user name is ignored: the
 * token identifies the principal.
 */
function passwordToken(headers: IncomingHttpHeaders): string | undefined {
  const encoded = isSocketUpgrade(headers)
    ? /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(headers.authorization ?? '')?.[1]
    : undefined;
  if (encoded === undefined || encoded.length > 2 * TOKEN_MAX_CHARS) return undefined;
  return /^[^:]*:([\x21-\x7e]+)$/.exec(Buffer.from(encoded, 'base64').toString('latin1'))?.[1];
}
