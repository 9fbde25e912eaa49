/** The server of the chat page. Tokens stay here: the page reaches only the sessions that it has started. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { connect } from '@coxswain/client';

const { COX_MODEL = '', PORT = '8080' } = process.env;
const client = await connect();

// Everyone who knows the random id may use the session. A server with users also checks the owner of the session.
function sessionOf(id: string | null) {
  if (!/^chat-[0-9a-f-]{36}$/.test(id ?? '')) throw new Error('not a session of this page');
  return client.session(String(id));
}

type Body = { id: string; text: string; callId: string; args: Record<string, string | number> };
const actions: Record<string, (body: Body) => Promise<unknown>> = {
  async send({ id, text }) {
    if (id) return sessionOf(id).say(text, { wait: 'accepted' });
    const sessionId = `chat-${randomUUID()}`;
    await client.startSession({ prompt: text, model: COX_MODEL }, { sessionId });
    return { id: sessionId };
  },
  allow: ({ id, callId, args }) => sessionOf(id).approve(callId, { args, wait: 'accepted' }),
  deny: ({ id, callId }) => sessionOf(id).deny(callId, { reason: 'The user denied it', wait: 'accepted' }),
  cancel: ({ id }) => sessionOf(id).cancel('The user cancelled it', { wait: 'accepted' }),
};

async function sendEvents(id: string | null, response: ServerResponse) {
  const session = sessionOf(id);
  const left = new AbortController();
  response.once('close', () => left.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).flushHeaders();
  for await (const event of session.stream({ from: 1, follow: true, signal: left.signal })) {
    if (!response.write(`data: ${JSON.stringify(event)}\n\n`)) await once(response, 'drain', { signal: left.signal });
  }
}

const server = createServer(async (request, response) => {
  try {
    const { host, origin, 'content-length': length } = request.headers;
    // Reject pages of other sites, whatever name of this server they use, and large bodies.
    const isOwnPage = /^127\.0\.0\.1:\d+$/.test(host ?? '') && (origin === undefined || origin === `http://${host}`);
    if (!isOwnPage || Number(length ?? 0) > 65_536) throw new Error('request rejected');
    const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`);
    if (pathname === '/') response.end(await readFile(new URL('page.html', import.meta.url)));
    else if (pathname === '/events') await sendEvents(searchParams.get('id'), response);
    else response.end(JSON.stringify(await actions[pathname.slice(1)]?.((await json(request)) as Body)));
  } catch (error) {
    if (!response.headersSent) response.writeHead(400);
    response.end(JSON.stringify({ message: (error as Error).message }));
  }
});
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`Chat: http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
