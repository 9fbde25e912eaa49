/** A session host on a bus: on a NATS server of this program, or on a server that already runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { gatherHooks } from '@coxswain/adapter-hooks';
import { createServiceLog } from '@coxswain/adapter-log';
import { connectionUrl, type NamedBus } from '@coxswain/adapter-nats';
import { CoxswainError, connect } from '@coxswain/client';
import { type LoadedPersona, type PersonaService, startPersonaService } from '@coxswain/personas';
import { makeFolder, readSeedFile } from '@coxswain/ports/discovery';
import { readId, TenantId } from '@coxswain/protocol';
import { type HeardOnBus, startSessionsService } from '@coxswain/sessions';
import { type EmbeddedOptions, startEmbedded } from '../instance/mod.ts';
import { hostTools } from './host-tools.ts';
import type { Instance } from './instance.ts';
import type { CoxswainOptions } from './options.ts';

/** The wait until a host knows a persona, in ms. */
const HEARD_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** A started session host and its bus. */
interface StartedHost {
  readonly nats: NamedBus;
  readonly url: string;
  readonly heard: HeardOnBus;
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/**
 * Starts a session host and a client.
 * @param stateDir the state directory, with the logs of the services.
 * @throws NatsServerNotFoundError, StateDirInUseError; CoxswainError `nats_unreachable`; SeedFileError; the errors of
 * the services.
 */
export async function startOnBus(
  options: CoxswainOptions,
  { stateDir, root, env }: { readonly stateDir: string; readonly root: string; readonly env: NodeJS.ProcessEnv },
): Promise<Instance> {
  const log = createServiceLog('sessions', 'silent', stateDir, env, []);
  const host = {
    tools: hostTools(options.tools ?? [], env),
    hooks: await gatherHooks(options.hooks, 'program', log),
    models: options.models,
    defaultModel: options.model,
    defaultRoot: root,
    policy: options.policy,
    stopPredicates: options.stopPredicates,
  };
  const started = await (options.bus === undefined || options.bus === 'embedded'
    ? startOwnServer(stateDir, env, host)
    : joinServer(options, stateDir, env, host));
  const services: PersonaService[] = [];
  try {
    const { servers, token, credentials } = started.nats;
    const tenant = readId(TenantId, 'tenant', options.tenant ?? credentials?.tenant ?? 'default');
    const client = await connect({ servers, token, ...credentials, tenant, name: 'coxswain-embedded' });
    return {
      client,
      url: started.url,
      failed: Promise.race([started.failed, client.closed().then((why) => why ?? new Promise<never>(() => undefined))]),
      async serve(persona: LoadedPersona) {
        const service = await startPersonaService({
          personas: [{ ...persona, definition: persona.persona }],
          nats: started.nats,
          tenant,
          stateDir,
          log: 'file',
          env,
          metrics: null,
          models: options.models,
        });
        services.push(service);
        for (const { name, version } of service.personas)
          await untilHeard(() => started.heard.personas.isServed(tenant, name, version), name);
      },
      async stop() {
        // Stops every part, even if one fails, and throws the first failure.
        const ended = await Promise.allSettled(services.map((service) => service.stop()));
        ended.push(...(await Promise.allSettled([client.close()])));
        ended.push(...(await Promise.allSettled([started.stop()])));
        const failure = ended.find((one) => one.status === 'rejected');
        if (failure) throw failure.reason;
      },
    };
  } catch (error) {
    await started.stop();
    throw error;
  }
}

type HostParts = NonNullable<EmbeddedOptions['host']>;

async function startOwnServer(stateDir: string, env: NodeJS.ProcessEnv, host: HostParts): Promise<StartedHost> {
  const holder = { title: 'startCoxswain()', passing: false };
  const embedded = await startEmbedded({ stateDir, services: true, env, holder, host });
  const { heard, server, failed } = embedded;
  if (!heard) throw new Error('an embedded instance without a session host');
  const { url, token } = server;
  const gone = server.exited.then(({ expected }) =>
    expected
      ? new Promise<never>(() => undefined)
      : new CoxswainError('nats_server_ended', 'nats-server ended unexpectedly'),
  );
  return {
    nats: { servers: url, token },
    url: connectionUrl({ url, token }),
    heard,
    failed: Promise.race([failed, gone]),
    stop: () => embedded.stop(),
  };
}

async function joinServer(
  { bus = '', nkey }: CoxswainOptions,
  stateDir: string,
  env: NodeJS.ProcessEnv,
  host: HostParts,
): Promise<StartedHost> {
  const nats = { servers: bus, credentials: nkey === undefined ? undefined : await readSeedFile(nkey) };
  await makeFolder(stateDir);
  const service = await startSessionsService({ ...host, nats, stateDir, env, log: 'file', metrics: null });
  const { registered, failed } = service;
  return { nats, url: bus, heard: registered, failed, stop: () => service.stop() };
}

async function untilHeard(isHeard: () => boolean, name: string): Promise<void> {
  const untilMs = performance.now() + HEARD_TIMEOUT_MS;
  while (!isHeard()) {
    if (performance.now() > untilMs)
      throw new CoxswainError('no_host', `no session host knows the persona ${name} within ${HEARD_TIMEOUT_MS} ms`);
    await sleep(POLL_MS);
  }
}
