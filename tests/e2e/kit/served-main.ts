/**
 * One instance of every kind of served work, under a name and with a log: `served.mjs NAME LOG`. Work takes the time that its
 * request asks for. The log has a line for each acceptance of a call or a step, and for each start: the session, the
 * process, and the time.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHookRegistry } from '@coxswain/adapter-hooks';
import { connectionTo, connectNats, serveHooks } from '@coxswain/adapter-nats';
import { connect, defineTool, type ServePersonaOptions } from '@coxswain/client';
import { DEFAULT_TENANT, type WorkObserver } from '@coxswain/protocol';

const [name = '', log = ''] = process.argv.slice(2);
const { NATS_URL: servers = '' } = process.env;
// It ends with the test.
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();

interface Work {
  readonly key: string;
  readonly takesMs: number;
}

const note = (what: 'accepted' | 'started', key: string) =>
  appendFileSync(log, `${what} ${key} ${process.pid} ${Date.now()}\n`);
const observer: WorkObserver = {
  begin({ sessionId, traceparent }) {
    note('accepted', sessionId);
    return { traceparent, end: () => undefined };
  },
};

async function run({ key, takesMs }: Work, signal?: AbortSignal): Promise<string> {
  note('started', key);
  await sleep(takesMs, undefined, signal ? { signal } : {});
  return `by ${process.pid}`;
}

const toolNamed = (tool: string, idempotent: boolean) =>
  defineTool({
    name: tool,
    description: 'Works.',
    idempotent,
    inputSchema: { type: 'object' },
    execute: (work, { abortSignal }) => run(work as unknown as Work, abortSignal),
  });
const answerHook = async ({ payload }: { readonly payload: unknown }) => ({ deny: await run(payload as Work) });

const models: ServePersonaOptions['models'] = {
  check: async () => null,
  resolve: () => ({
    async stream({ system }, onPart, signal) {
      const end = { usage: { input_tokens: 0, output_tokens: 0 }, attempts: 1 };
      try {
        const text = await run(JSON.parse(system) as Work, signal);
        onPart({ type: 'text', text });
        const message = { role: 'assistant' as const, content: [{ type: 'text' as const, text }] };
        return { ...end, status: 'complete', message, finishReason: 'stop' };
      } catch {
        // Aborted.
        const message = { role: 'assistant' as const, content: [] };
        return { ...end, status: 'cancelled', message, finishReason: 'cancelled' };
      }
    },
  }),
};

const nc = await connectNats(connectionTo({ servers }));
const client = await connect(connectionTo({ servers }));
const handlers = createHookRegistry();
const settings = { id: `${name}-hook`, timeoutMs: 30_000 };
handlers.registerToolHook({ pattern: '*', ...settings, pre: (payload) => answerHook({ payload }) });
const silent = () => undefined;
await serveHooks(
  nc,
  { debug: silent, info: silent, warn: silent, error: (about, message) => console.error(message, about) },
  { tenant: DEFAULT_TENANT, service: name, handlers },
);
await client.serveTool(toolNamed(`${name}_again`, true), { observer });
await client.serveTool(toolNamed(`${name}_once`, false), { observer });
await client.servePersona(
  {
    name,
    version: 'v1',
    prompt: 'You work.',
    model: 'fake/model',
    hooks: [
      { event: 'PreToolUse', id: 'hook', timeoutMs: 30_000, handler: (payload: unknown) => answerHook({ payload }) },
    ],
  },
  { models, tools: [toolNamed('again', true), toolNamed('once', false)], stepsAtOnce: 256, observer },
);
process.stdout.write('ready\n');
