/** Start options: the personas of the gateway's folder, and the demo. */
import { DemoStart, StartOptions } from '@coxswain/protocol';
import type { App } from '../app/mod.ts';
import { abortOnDisconnect, type GatewayContext, Problem, principalOf } from '../context/mod.ts';
import { NoQuery, PROBLEMS } from '../http/mod.ts';

/** For a gateway without a folder of its own: it may run on another machine than the session hosts. */
const NO_OPTIONS: StartOptions = { folder: null, personas: [], has_demo: false };

/** Adds the routes. */
export function startOptionRoutes(app: App, { starts, expensiveReads }: GatewayContext): void {
  app.get(
    '/v1/start-options',
    {
      config: { scope: 'run' },
      schema: {
        operationId: 'startOptions',
        summary: 'Returns options for a start form: personas, models and folders.',
        tags: ['sessions'],
        querystring: NoQuery,
        response: { 200: StartOptions, ...PROBLEMS },
      },
    },
    (request, reply) =>
      starts ? expensiveReads.run(principalOf(request), () => starts.options(), abortOnDisconnect(reply)) : NO_OPTIONS,
  );

  app.post(
    '/v1/demo',
    {
      config: { scope: 'run' },
      schema: {
        operationId: 'prepareDemo',
        summary: 'Writes the files of the demo and returns the start body that plays it.',
        tags: ['sessions'],
        querystring: NoQuery,
        response: { 200: DemoStart, ...PROBLEMS },
      },
    },
    () => {
      if (!starts?.prepareDemo)
        throw new Problem('not_found', 'this gateway has no demo; use the gateway of cox up on this machine');
      return starts.prepareDemo();
    },
  );
}
