/** Samplers over processes: a gateway, a host and a worker keep a trace whole, or nothing of it. */
import { afterAll, afterEach, expect, test } from 'vitest';
import { startBus } from './kit/bus.ts';
import { calls, done } from './kit/called-tools.ts';
import { Child, COX_MAIN } from './kit/child.ts';
import { makeTokens, serveGateway } from './kit/gateway-process.ts';
import { endOf } from './kit/journal.ts';
import { startOtlpReceiver, treeLines } from './kit/otlp-receiver.ts';
import { personaModule } from './kit/persona-service.ts';
import { removeScratch } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';

const ended: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(removeScratch);

const CALLER = 'b7ad6b7169203331';
/** Traces of callers. The caller samples only the second; so does a ratio of one half, by their ids. */
const LEFT = '1af7651916cd43dd8448eb211c80319c';
const KEPT = '9af7651916cd43dd8448eb211c80319c';
const TREE = `
gateway: POST /v1/sessions
  sessions: invoke_agent worker
    sessions: provision
    sessions: turn 1
      sessions: chat
        personas: serve_step worker
      sessions: execute_tool look
        personas: serve_tool look
    sessions: turn 2
      sessions: chat
        personas: serve_step worker
`
  .trim()
  .split('\n');

interface Cast {
  /** Starts a session through the gateway and waits for its end. */
  run(id: string, traceparent: string): Promise<void>;
  /** Ends all processes, which send what they have, and says what came: the tree of each trace. */
  trees(): Promise<Map<string, string[]>>;
}

async function cast(sampler: string, share: string): Promise<Cast> {
  const bus = await startBus();
  ended.push(() => bus.stop());
  const collector = await startOtlpReceiver();
  ended.push(() => collector.stop());
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_TRACES_SAMPLER: sampler,
    OTEL_TRACES_SAMPLER_ARG: share,
  };
  const host = await startHost(bus, env);
  ended.push(() => host.kill());
  const { file: tokensFile, of: tokens } = await makeTokens(['tester'], 'admin');
  const gateway = await serveGateway(bus, 0, ['--tokens', tokensFile], env);
  ended.push(() => gateway.child.kill());
  const model = await scripted([calls('look'), done]);
  const definition = { name: 'worker', model, permissions: { rules: [{ tool: '*', action: 'allow' }] } };
  const { file } = await personaModule(
    definition,
    `[defineTool({ name: 'look', description: 'Looks.', inputSchema: z.object({}), execute: async () => 'seen' })]`,
  );
  const worker = new Child(COX_MAIN, ['serve', 'personas', file, '--nats', bus.natsUrl, '--json'], { env });
  ended.push(() => worker.kill());
  await worker.says('"type":"ready"');
  await host.says(/"persona":"worker".*a persona is announced/);
  return {
    async run(id, traceparent) {
      const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/sessions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tokens.tester}`,
          'content-type': 'application/json',
          traceparent,
        },
        body: JSON.stringify({ session_id: id, prompt: 'Go.', persona: 'worker' }),
      });
      expect(answer.status, await answer.text()).toBe(202);
      await endOf(bus, id);
    },
    async trees() {
      for (const child of [worker, host, gateway.child]) await child.terminate();
      const { spans } = collector;
      return new Map(
        [...new Set(spans.map(({ traceId }) => traceId))].map((traceId) => {
          const of = spans.filter((span) => span.traceId === traceId);
          const lines = treeLines(of, CALLER);
          expect(lines, 'every span stands in the tree').toHaveLength(of.length);
          return [traceId, lines];
        }),
      );
    },
  };
}

// `libs/adapters/telemetry` owns what each sampler decides; here all processes decide alike.
test.each([
  ['parentbased_always_off', ''],
  ['traceidratio', '0.5'],
])('%s %s keeps a trace in every process or in none', async (sampler, share) => {
  const { run, trees } = await cast(sampler, share);
  await run('left', `00-${LEFT}-${CALLER}-00`);
  await run('kept', `00-${KEPT}-${CALLER}-01`);
  expect([...(await trees())]).toEqual([[KEPT, TREE]]);
});
