/** Bodies: JSON, and plain text where a route takes it. By the same rules as on the bus. */
import { parseStrictJson, unwritableProblem } from '@coxswain/protocol';
import type { FastifyRequest } from 'fastify';
import type { App } from './create-app.ts';
import { Problem } from './problem.ts';

/** A body that came as plain text. */
export class TextBody {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Teaches the app to read them. Everything else is refused, forms of web pages among it. */
export function readBodies(app: App): void {
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
      const text = utf8(bytes);
      return text.trim() === '' ? {} : parsed(text);
    },
  );
  app.addContentTypeParser(
    'text/plain',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, bytes: Buffer) => new TextBody(utf8(bytes)),
  );
}

/** What a header says that a body is written in (RFC 9110, 8.3.2), in small letters; null where it says nothing. */
function charsetOf(contentType: string | undefined): string | null {
  const named = /;\s*charset\s*=\s*"?([^\s";]{0,64})/i.exec(contentType ?? '')?.[1];
  return named === undefined ? null : named.toLowerCase();
}

/**
 * What a text says: itself, under `body`, or, as on the bus, the JSON object that it begins like. What is half of one is taken for
 * neither.
 * @throws Problem `invalid_json`.
 */
export function saidInText({ text }: TextBody): unknown {
  return text.trimStart().startsWith('{') ? parsed(text) : { body: text };
}

function parsed(text: string): unknown {
  const json = parseStrictJson(text);
  if (!json.ok) throw new Problem('invalid_json', `the body is not valid JSON: ${json.why}`, { field: 'body' });
  const unwritable = unwritableProblem(json.value);
  if (unwritable) throw new Problem(unwritable.code, unwritable.message, { field: unwritable.field });
  return json.value;
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Told with a code.
    throw new Problem('invalid_utf8', 'the body is not UTF-8', { field: 'body' });
  }
}
