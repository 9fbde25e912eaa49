/** Routes of the service itself: liveness, readiness and metrics. */
import { FORMAT_VERSIONS } from '@coxswain/session';
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import { expectBus, type GatewayContext } from '../context/mod.ts';
import { PROBLEMS } from '../http/mod.ts';

const Health = z.strictObject({
  status: z.literal('ok'),
  version: z.string().describe('The version of the packages.'),
  machine_version: z.int().describe('The version of the turn machine.'),
  record_version: z.int().describe('The version of the shape of journal records.'),
  tombstone_version: z.int().describe('The version of the shape of tombstones.'),
  snapshot_version: z.int().describe('The version of the shape of snapshots.'),
});
const HEALTHY = { status: 'ok' as const, ...FORMAT_VERSIONS };

/** Adds the routes. */
export function serviceRoutes(app: App, context: GatewayContext): void {
  app.get(
    '/healthz',
    {
      config: { scope: null },
      exposeHeadRoute: true,
      schema: {
        operationId: 'healthz',
        summary: 'Liveness: responds while the process runs. Needs no token.',
        tags: ['service'],
        response: { 200: Health, ...PROBLEMS },
      },
    },
    async () => HEALTHY,
  );

  app.get(
    '/readyz',
    {
      config: { scope: null },
      exposeHeadRoute: true,
      schema: {
        operationId: 'readyz',
        summary: 'Readiness: checks that NATS responds. Needs no token.',
        tags: ['service'],
        response: { 200: Health, ...PROBLEMS },
      },
    },
    async () => {
      await expectBus(context);
      return HEALTHY;
    },
  );

  app.get(
    '/metrics',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'metrics',
        summary: 'Prometheus metrics of this process, without names of tenants and sessions.',
        tags: ['service'],
        response: {
          200: { description: 'Prometheus text format.', content: { 'text/plain': { schema: z.string() } } },
          ...PROBLEMS,
        },
      },
    },
    async (_request, reply) => {
      const text = await context.metrics.registry.metrics();
      reply.type(context.metrics.registry.contentType).serializer((body: unknown) => String(body));
      return text;
    },
  );
}
