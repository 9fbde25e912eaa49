/** Request bodies: JSON, and plain text on some routes. The rules are the same as on the bus. */
import { parseStrictJson, unwritableProblem } from '@coxswain/protocol';
import type { FastifyRequest } from 'fastify';
import type { App } from '../app/mod.ts';
import { Problem } from '../context/mod.ts';

/** A plain-text body. */
export class TextBody {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Adds the body parsers. Other content types are rejected, including HTML forms. */
export function addBodyParsers(app: App): void {
  app.removeAllContentTypeParsers();
  app.addHook('preParsing', async ({ headers }) => {
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
  });
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, bytes: Buffer) => {
      const text = decodeUtf8(bytes);
      return text.trim() === '' ? {} : parseJson(text);
    },
  );
  app.addContentTypeParser(
    'text/plain',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, bytes: Buffer) => new TextBody(decodeUtf8(bytes)),
  );
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
