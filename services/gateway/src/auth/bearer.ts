/**
 * Where a request has its token: in the header `authorization`. Never in its address, which ends in logs, histories and the
 * headers of other requests. A page that opens a WebSocket can send no header of its own, and offers it as a protocol. A program
 * that can be given nothing but a WebSocket’s address has it there as a password, and sends that as a header, too.
 */
import type { IncomingHttpHeaders } from 'node:http';

/** The protocol of our WebSockets. */
export const SOCKET_PROTOCOL = 'coxswain.v1';
const OFFERED = 'bearer.';
const TOKEN_MAX_CHARS = 8_192;

/** The token, or null where there is none. */
export function bearerOf(headers: IncomingHttpHeaders): string | null {
  const { authorization } = headers;
  const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1] ?? offered(headers) ?? password(headers);
  return token === undefined || token.length > TOKEN_MAX_CHARS ? null : token;
}

function opensSocket({ upgrade }: IncomingHttpHeaders): boolean {
  return upgrade?.toLowerCase() === 'websocket';
}

function offered(headers: IncomingHttpHeaders): string | undefined {
  const { authorization, 'sec-websocket-protocol': protocols } = headers;
  if (!opensSocket(headers) || authorization !== undefined) return undefined;
  const names = (protocols ?? '').split(',').map((name) => name.trim());
  return names.find((name) => name.startsWith(OFFERED))?.slice(OFFERED.length);
}

/**
 * Of a WebSocket alone: browsers name the page that opens one always, so that credentials that a browser might send by itself are of no
 * use to a page of another site. Whose the name is, is for the token to say.
 */
function password(headers: IncomingHttpHeaders): string | undefined {
  const encoded = opensSocket(headers)
    ? /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(headers.authorization ?? '')?.[1]
    : undefined;
  if (encoded === undefined || encoded.length > 2 * TOKEN_MAX_CHARS) return undefined;
  return /^[^:]*:([\x21-\x7e]+)$/.exec(Buffer.from(encoded, 'base64').toString('latin1'))?.[1];
}
