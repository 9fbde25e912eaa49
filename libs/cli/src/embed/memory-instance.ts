/** Sessions in the memory of this process: a session host on a memory bus. Nothing survives the process. */
import { gatherHooks } from '@coxswain/adapter-hooks';
import { createServiceLog } from '@coxswain/adapter-log';
import {
  createIds,
  createMemoryBus,
  createMemoryPersonas,
  createMemoryRememberedRules,
  createSystemClock,
} from '@coxswain/adapter-memory';
import { createModels, KNOWN_PRICES } from '@coxswain/adapter-models';
import { combineToolSources, createCodeTools, createPublicFetch } from '@coxswain/adapter-tools';
import { Client, Session } from '@coxswain/client';
import type { LoadedPersona } from '@coxswain/personas';
import type { ToolSource } from '@coxswain/ports';
import { DEFAULT_TENANT, type Persona, readId, TenantId } from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import { hostTools } from './host-tools.ts';
import type { Instance } from './instance.ts';
import { MemoryTransport } from './memory-transport.ts';
import type { CoxswainOptions } from './options.ts';

/** Starts a session host in memory. Warnings are written to stderr; `COX_LOG_LEVEL` changes the level. */
export async function startInMemory(options: CoxswainOptions, root: string, env: NodeJS.ProcessEnv): Promise<Instance> {
  const tenant = readId(TenantId, 'tenant', options.tenant ?? DEFAULT_TENANT);
  const log = createServiceLog('sessions', 'stderr', root, { ...env, COX_LOG_LEVEL: env.COX_LOG_LEVEL || 'warn' }, []);
  const clock = createSystemClock();
  const bus = createMemoryBus(clock);
  const own = options.models ?? {};
  const modelsAt = (baseFolder: string) =>
    createModels({ env, clock, baseFolder, own, publicFetch: createPublicFetch() });
  const served = createMemoryPersonas();
  const plain = new Map<string, Persona>();
  const toolsOf = new Map<string, ToolSource>();
  const none = createCodeTools([]);
  const host = createSessionHost(
    {
      ...bus.hostPorts(),
      clock,
      ids: createIds(clock),
      log,
      models: modelsAt(root),
      tools: combineToolSources([
        { open: (spec, signal) => (toolsOf.get(spec.served?.name ?? '') ?? none).open(spec, signal) },
        hostTools(options.tools ?? [], env),
      ]),
      hooks: await gatherHooks(options.hooks, 'program', log),
      personas: { find: async (name) => plain.get(name) ?? null, names: async () => [...plain.keys()] },
      served,
      rememberedRules: createMemoryRememberedRules(),
      defaultRoot: root,
      defaultModel: options.model ?? (env.COX_MODEL || undefined),
      stopPredicates: options.stopPredicates,
      prices: KNOWN_PRICES,
    },
    { name: 'memory' },
  );
  const transport = new MemoryTransport(bus, host, tenant);
  await host.start();
  return {
    client: new Client(transport, (ref) => new Session(transport, ref)),
    url: null,
    failed: new Promise(() => undefined),
    async serve({ persona, handlersById, tools, folder }: LoadedPersona) {
      if (Object.keys(handlersById).length === 0 && tools.length === 0) return void plain.set(persona.name, persona);
      toolsOf.set(persona.name, createCodeTools(tools));
      const version = persona.version ?? 'memory';
      served.serve(tenant, { ...persona, version }, modelsAt(folder), handlersById);
    },
    async stop() {
      await transport.close();
      await host.stop(0);
      bus.close();
    },
  };
}
