/** The tool `fetch_url`: fetches one document over HTTP. Off unless the host enables it. */
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { ToolOutcome } from '@coxswain/ports';
import { binaryMediaType, globMatches } from '@coxswain/protocol';
import { headWithin, jsonBytes } from './bounded-text.ts';
import type { BuiltInTool, ResultBounds } from './built-in-tool.ts';
import { publicLookup, refuseAddressInUrl } from './reachable-address.ts';
import { responseTo } from './response-to.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { textResult } from './tool-outcome.ts';
import { messageOf, ToolProblem } from './tool-problem.ts';

/** Settings of `fetch_url`. */
export interface FetchUrlOptions {
  /** Globs for host names, also for redirects; all hosts by default. */
  readonly hosts?: readonly string[];
  /** Whether this machine and private networks may be reached; false by default. */
  readonly privateAddresses?: boolean;
  /** The time limit of the whole fetch with its redirects, in milliseconds; 30,000 by default. */
  readonly timeoutMs?: number;
}

const parameters = {
  url: {
    type: 'string',
    description: 'An http or https URL.',
    minLength: 1,
    maxLength: TOOL_BOUNDS.urlMaxChars,
  },
} as const;

/** Creates the tool `fetch_url`. */
export function fetchUrlTool(options: FetchUrlOptions): BuiltInTool<typeof parameters> {
  const timeoutMs = options.timeoutMs ?? TOOL_BOUNDS.fetchTimeoutMs;
  return {
    name: 'fetch_url',
    description:
      'Fetches a document with GET and returns it: text as text, images and other files as files. ' +
      `Follows up to ${TOOL_BOUNDS.fetchRedirectsMax} redirects. Sends no cookies and no credentials.`,
    parameters,
    traits: { idempotent: true },
    async run({ url }, { bounds, abortSignal: signal }) {
      const timeout = AbortSignal.timeout(timeoutMs);
      try {
        const document = await fetchDocument(url, options, bounds, AbortSignal.any([signal, timeout]));
        return documentOutcome(document, bounds);
      } catch (error) {
        if (error instanceof ToolProblem || signal.aborted) throw error;
        if (timeout.aborted)
          throw new ToolProblem('tool_failed', `${url} did not arrive within ${timeoutMs} ms (timeout)`);
        throw new ToolProblem('tool_failed', `${url} could not be fetched: ${messageOf(error)}`);
      }
    },
  };
}

interface FetchedDocument {
  readonly url: string;
  readonly status: number;
  readonly mediaType: string;
  readonly charset: string;
  readonly body: Buffer;
  /** Whether the body is longer than the part that was read. */
  readonly cut: boolean;
}

async function fetchDocument(
  given: string,
  options: FetchUrlOptions,
  bounds: ResultBounds,
  signal: AbortSignal,
): Promise<FetchedDocument> {
  let url = parseUrl(given);
  for (let redirects = 0; redirects <= TOOL_BOUNDS.fetchRedirectsMax; redirects++) {
    refuseUrl(url, options);
    const response = await get(url, options, signal);
    const status = response.statusCode ?? 0;
    const location = response.headers.location;
    if (status >= 300 && status < 400 && location !== undefined) {
      response.destroy();
      url = parseUrl(location, url);
      continue;
    }
    const { body, cut } = await readBody(response, bounds.fileMaxBytes);
    const type = response.headers['content-type'] ?? '';
    const mediaType = type.split(';')[0]?.trim().toLowerCase() || 'application/octet-stream';
    const charset = /charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1] ?? 'utf-8';
    return { url: url.href, status, mediaType, charset, body, cut };
  }
  throw new ToolProblem('tool_failed', `${given} redirects more than ${TOOL_BOUNDS.fetchRedirectsMax} times`);
}

function parseUrl(text: string, base?: URL): URL {
  try {
    return new URL(text, base);
  } catch {
    throw new ToolProblem('invalid_call_arguments', `${JSON.stringify(text)} is not a URL`, { field: 'url' });
  }
}

function refuseUrl(url: URL, { hosts, privateAddresses }: FetchUrlOptions): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ToolProblem('invalid_call_arguments', `${url.protocol} is not supported, only http: and https:`, {
      field: 'url',
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new ToolProblem('invalid_call_arguments', 'a URL with a user name or password is not allowed', {
      field: 'url',
    });
  }
  if (hosts !== undefined && !hosts.some((glob) => globMatches(glob, url.hostname))) {
    throw new ToolProblem('tool_failed', `${url.hostname} is not an allowed host; allowed: ${hosts.join(', ')}`);
  }
  if (privateAddresses !== true) refuseAddressInUrl(url);
}

function get(url: URL, { privateAddresses }: FetchUrlOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'GET',
    signal,
    // One connection per request, so that none stays open.
    agent: false,
    headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'coxswain' },
    ...(privateAddresses === true ? {} : { lookup: publicLookup }),
  });
  const response = responseTo(request);
  request.end();
  return response;
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<{ body: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    // Leaving the loop destroys the response and its connection.
    if (bytes > maxBytes) break;
  }
  const body = Buffer.concat(chunks);
  return { body: body.subarray(0, maxBytes), cut: bytes > maxBytes };
}

function documentOutcome(document: FetchedDocument, bounds: ResultBounds): ToolOutcome {
  const { url, status, mediaType, body, cut } = document;
  const isError = status < 200 || status >= 300;
  const detail = { url, http_status: status, media_type: mediaType, bytes: body.length };
  const told = isError ? [`[HTTP status ${status}]`] : [];
  if (!isText(mediaType, body)) {
    if (cut)
      throw new ToolProblem('tool_failed', `${url} (${mediaType}) is larger than ${bounds.fileMaxBytes} bytes`, detail);
    const file = { type: 'file' as const, media_type: mediaType, data: body.toString('base64') };
    const result = { content: [file], is_error: isError, detail };
    return { status: isError ? 'error' : 'ok', result };
  }
  const text = decode(body, document.charset);
  const shown = headWithin(text, bounds.textMaxBytes);
  if (cut || shown.length < text.length) told.push(`[only the first ${shown.length} characters are shown]`);
  if (jsonBytes(text) === 0) told.push('[the document is empty]');
  return {
    status: isError ? 'error' : 'ok',
    result: textResult(isError, [shown, ...told], detail),
    ...(shown.length < text.length ? { whole: text } : {}),
  };
}

function isText(mediaType: string, body: Buffer): boolean {
  if (/^text\/|[/+](json|xml|yaml|javascript|x-www-form-urlencoded)$/.test(mediaType)) return true;
  return !/^(image|audio|video|font)\//.test(mediaType) && binaryMediaType(body) === null;
}

function decode(body: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    // An unknown charset is decoded as UTF-8, with U+FFFD for invalid bytes.
    return body.toString('utf8');
  }
}
