/**
 * A model provider of the test's own: HTTP, OpenAI's chat protocol, streaming. It answers as it is told and keeps every
 * request, so that a test sees what a model would have seen.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.ts';

/** A request's messages, as they came over the wire. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

/** One request. */
export interface ChatRequest {
  /** The whole body, for what must not be anywhere in it. */
  readonly text: string;
  readonly messages: readonly ChatMessage[];
}

/** One answer. */
export interface ChatAnswer {
  /** Whole, or in parts: each part is sent as soon as the iterable yields it. */
  readonly text?: string | AsyncIterable<string>;
  readonly calls?: readonly { readonly id: string; readonly tool: string; readonly args: object }[];
  /** Holds the answer open after its text and before its calls. */
  readonly before_end?: Promise<unknown>;
  /** What it reports of the prompt; 7 without it. */
  readonly prompt_tokens?: number;
}

/** A provider that runs. */
export interface ChatProvider {
  /** For `base_url`. */
  readonly url: string;
  readonly requests: readonly ChatRequest[];
  /** Waits for the request of this number, counted from 1. */
  request(number: number): Promise<ChatRequest>;
  stop(): Promise<void>;
}

/**
 * Starts a provider on loopback.
 * @param answer what it says to a request, counted from 1.
 */
export async function startChatProvider(
  answer: (request: ChatRequest, number: number) => ChatAnswer,
): Promise<ChatProvider> {
  const requests: ChatRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const request = { text, messages: (JSON.parse(text) as ChatRequest).messages };
      requests.push(request);
      // A client that has gone away is no fault of the provider.
      void stream(response, answer(request, requests.length)).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    request: (number) => until(`request ${number} to the model`, () => requests[number - 1]),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function stream(
  response: ServerResponse,
  { text = '', calls = [], before_end, prompt_tokens = 7 }: ChatAnswer,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (choice: object, rest: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }], ...rest })}\n\n`,
    );
  for await (const content of typeof text === 'string' ? [text] : text) send({ delta: { role: 'assistant', content } });
  await before_end;
  for (const [index, { id, tool, args }] of calls.entries()) {
    const call = { index, id, type: 'function', function: { name: tool, arguments: JSON.stringify(args) } };
    send({ delta: { tool_calls: [call] } });
  }
  send(
    { delta: {}, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' },
    { usage: { prompt_tokens, completion_tokens: 3, total_tokens: prompt_tokens + 3 } },
  );
  response.end('data: [DONE]\n\n');
}

/** The text of a message, wherever the protocol puts it. */
export function contentOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : '';
}
