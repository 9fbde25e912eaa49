/** Request bodies: JSON, and plain text on some routes. The rules are the same as on the bus. */
import { parseStrictJson, unwritableProblem } from '@coxswain/protocol';
import type { FastifyRequest } from 'fastify';
import type { App } from '../app/mod.ts';
import { busyProblem, GATEWAY_BOUNDS, type MemoryShares, Problem } from '../context/mod.ts';

/** A plain-text body. */
export class TextBody {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Adds the body parsers. Other content types are rejected, including HTML forms.
 * @param bodies memory for the bodies. Without room for one, the request is rejected before its body is read.
 */
export function addBodyParsers(app: App, bodies: MemoryShares): void {
  app.removeAllContentTypeParsers();
  app.decorateRequest('bodyShare', null);
  app.addHook('preParsing', async (request, { raw }) => {
    const { headers, principal } = request;
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      throw new Problem('unsupported_media_type', 'content-encoding: compressed bodies are not supported', {
        field: 'content-encoding',
      });
    const charset = charsetOf(headers['content-type']);
    if (charset !== null && charset !== 'utf-8' && charset !== 'utf8')
      throw new Problem('unsupported_media_type', `content-type: bodies must be UTF-8, not ${charset}`, {
        field: 'content-type',
      });
    // If the client has disconnected, there will be no further `close` event.
    if (hasNoBody(request) || principal === null || raw.destroyed) return;
    const share = bodies.take(bodyBytes(request) + GATEWAY_BOUNDS.requestBytes, principal);
    if (!share) throw busyProblem('too many bodies of requests are read or handled');
    request.bodyShare = share;
    raw.once('close', () => share.release());
  });
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async ({ bodyShare }: FastifyRequest, bytes: Buffer) => {
      bodyShare?.shrink(bytes.length + GATEWAY_BOUNDS.requestBytes);
      const text = decodeUtf8(bytes);
      return text.trim() === '' ? {} : parseJson(text);
    },
  );
  app.addContentTypeParser(
    'text/plain',
    { parseAs: 'buffer' },
    async ({ bodyShare }: FastifyRequest, bytes: Buffer) => {
      bodyShare?.shrink(bytes.length + GATEWAY_BOUNDS.requestBytes);
      return new TextBody(decodeUtf8(bytes));
    },
  );
}

function hasNoBody({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The size of a body that may be read, in bytes: the limit of the route if the client does not say. */
function bodyBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  return headers['transfer-encoding'] === undefined
    ? Math.min(Number(headers['content-length'] ?? 0), bodyLimit)
    : bodyLimit;
}

/** The charset in a content type (RFC 9110, section 8.3.2), in lower case; null if there is none. */
function charsetOf(contentType: string | undefined): string | null {
  const named = /;\s*charset\s*=\s*"?([^\s";]{0,64})/i.exec(contentType ?? '')?.[1];
  return named === undefined ? null : named.toLowerCase();
}

/**
 * The command body of a text: the JSON object if the text starts with `{`, otherwise the text as the member `body`.
 * @throws Problem `invalid_json` (400), also for an incomplete object; other validation codes.
 */
export function parseTextBody({ text }: TextBody): unknown {
  return text.trimStart().startsWith('{') ? parseJson(text) : { body: text };
}

function parseJson(text: string): unknown {
  const json = parseStrictJson(text);
  if (!json.ok) throw new Problem('invalid_json', `the body is not valid JSON: ${json.why}`, { field: 'body' });
  const unwritable = unwritableProblem(json.value);
  if (unwritable) throw new Problem(unwritable.code, unwritable.message, { field: unwritable.field });
  return json.value;
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // An explicit error with a code, instead of replacement characters.
    throw new Problem('invalid_utf8', 'the body is not UTF-8', { field: 'body' });
  }
}
