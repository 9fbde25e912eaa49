/** Routes of AG-UI, for clients such as CopilotKit. */
import { Persona } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { RunInput, readRunInput, startRun } from '../agui/mod.ts';
import type { App } from '../app/mod.ts';
import { objectBody } from '../commands/mod.ts';
import { GATEWAY_BOUNDS, type GatewayContext } from '../context/mod.ts';
import { NoQuery, PROBLEMS } from '../http/mod.ts';

const OfPersona = z.strictObject({
  persona: Persona.shape.name.meta({ description: 'Persona of a new session.' }),
});

/** Adds the routes. */
export function aguiRoutes(app: App, context: GatewayContext): void {
  const options = (operationId: string, summary: string) => ({
    config: { scope: 'read' as const },
    // AG-UI clients send the whole conversation each time.
    bodyLimit: GATEWAY_BOUNDS.aguiBodyMaxBytes,
    schema: {
      operationId,
      summary,
      description:
        'Accepts a RunAgentInput. Returns the events of a run as server-sent events until the session has ended or waits ' +
        'for a person. In addition to `read` it needs the scope of its action: `run` for a start or a prompt, `steer` for messages ' +
        'to a running session, `approve` for answers to interrupts.',
      tags: ['ag-ui'],
      querystring: NoQuery,
      body: z.unknown().meta(bodySchema()),
      response: {
        200: {
          description: 'Events of AG-UI 1.0.',
          content: { 'text/event-stream': { schema: z.string().meta({ description: 'Data is JSON: one event.' }) } },
        },
        ...PROBLEMS,
      },
    },
  });
  const serve = async (request: FastifyRequest, reply: FastifyReply, persona: string | null) => {
    const stream = await startRun(context, request, reply, readRunInput(objectBody(request, null)), persona);
    // A stream may last for hours, and the body contains the whole conversation.
    request.body = undefined;
    request.bodyShare?.release();
    await stream();
    return reply;
  };
  app.post('/v1/agui', options('agui', 'Runs an AG-UI thread, which is a session.'), (request, reply) =>
    serve(request as FastifyRequest, reply as unknown as FastifyReply, null),
  );
  const ofPersona = options('aguiOfPersona', 'Runs an AG-UI thread. A new session has this persona.');
  app.post(
    '/v1/agui/:persona',
    { ...ofPersona, schema: { ...ofPersona.schema, params: OfPersona } },
    (request, reply) => serve(request as FastifyRequest, reply as unknown as FastifyReply, request.params.persona),
  );
}

function bodySchema(): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(RunInput, { io: 'input', unrepresentable: 'any' });
  return rest as Record<string, unknown>;
}
