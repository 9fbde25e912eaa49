/** The worker process: serves the routes that the SDK has built, as an application does, and starts the runs. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { start } from 'workflow/api';
import { getWorld, setWorld } from 'workflow/runtime';

const require = createRequire(import.meta.url);
const ROUTES = '/.well-known/workflow/v1';
const built = `./${process.env.SESSION}${ROUTES}`;
const askedAtMs = new Map();
const sessions = new Map();
let turnTimes = [];

// The model calls it; its bundle is a module of its own.
globalThis.modelAsked = (session) => {
  const nowMs = performance.now();
  const before = askedAtMs.get(session);
  askedAtMs.set(session, nowMs);
  if (before !== undefined) turnTimes.push(nowMs - before);
};

const world = getWorld();
setWorld({
  ...world,
  events: {
    ...world.events,
    // Tells when a run has ended: the SDK's own `returnValue` asks once a second.
    async create(runId, event, ...rest) {
      const created = await world.events.create(runId, event, ...rest);
      if (event.eventType === 'run_completed') process.send({ session: sessions.get(runId) });
      if (event.eventType === 'run_failed') process.exit(1);
      return created;
    },
  },
});

const { session: workflow } = require(`${built}/manifest.json`).workflows['session.mjs'];
const routes = new Map(['flow', 'step'].map((name) => [`${ROUTES}/${name}`, require(`${built}/${name}.js`).POST]));
const server = createServer(async (request, response) => {
  const route = routes.get(request.url);
  if (!route) return void response.writeHead(404).end();
  const answer = await route(
    new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method,
      headers: request.headers,
      body: Readable.toWeb(request),
      duplex: 'half',
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
});
// The SDK keeps an idle connection for 30 s; the server must not close it first.
server.keepAliveTimeout = 60_000;
server.listen(process.env.PORT, '127.0.0.1');
await once(server, 'listening');
await getWorld().start();

process.on('message', async ({ call, session, turns }) => {
  if (call === 'start') {
    const { runId } = await start(workflow, [session, turns]);
    sessions.set(runId, session);
    return;
  }
  process.send({ session, value: turnTimes });
  turnTimes = [];
});
process.on('disconnect', () => process.exit(0));
process.send({ session: 'ready' });
