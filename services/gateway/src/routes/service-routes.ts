/** What is asked of the service itself: whether it lives, whether it can do its work, its meters. */
import { VERSION } from '@coxswain/protocol';
import * as z from 'zod';
import type { App } from '../create-app.ts';
import { expectBus, type GatewayContext } from '../gateway-context.ts';
import { PROBLEMS } from './route-schemas.ts';

const Health = z.strictObject({ status: z.literal('ok'), version: z.string() });

/** Adds them. */
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
    async () => ({ status: 'ok' as const, version: VERSION }),
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
      return { status: 'ok' as const, version: VERSION };
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
