/** Personas that a test serves in processes of their own, and sessions that they answer. */
import { connectionTo, connectNats, type ListedPersona, listServedPersonas } from '@coxswain/adapter-nats';
import { type Delta, TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach } from 'vitest';
import type { Child } from './child.ts';
import type { Fixture } from './fixture.ts';
import { type PersonaProcess, personaModule, servePersona } from './persona-service.ts';
import { type ScriptTurn, scripted } from './scripts.ts';
import type { ToolModule } from './tool-service.ts';
import { until } from './until.ts';

/** A persona of the test's own, under a name that no other has. */
export interface TestPersona {
  readonly name: string;
  readonly module: ToolModule;
  readonly definition: object;
  /** Begins one instance, which ends with the test. */
  serve(...flags: string[]): Promise<PersonaProcess>;
}

/** What a test does with served personas. */
export interface ServedPersonas {
  /** A name that only this test uses. */
  fresh(what: string): string;
  /** Writes a persona that may call everything; `tools` is code, see {@link personaModule}. */
  served(turns: readonly ScriptTurn[], tools?: string, more?: object): Promise<TestPersona>;
  /** Serves a module, until the test ends. */
  serve(module: ToolModule, ...flags: string[]): Promise<PersonaProcess>;
  /** Starts a session. Resolves with its id. */
  start(persona: string | object, more?: object): Promise<string>;
  /** Resolves when the host knows of it. */
  known(name: string): Promise<void>;
  /** A persona as the registry has it. */
  listed(name: string): Promise<ListedPersona | undefined>;
  /** Its instances that work on something. */
  working(name: string): Promise<ListedPersona['instances']>;
  /** The process that works on something. */
  busy(name: string, among: readonly PersonaProcess[]): Promise<PersonaProcess>;
  /** What watchers of a session are shown, as it comes. */
  deltasOf(sessionId: string): Delta[];
}

const tenant = TenantId.parse('default');

/** Ends, after each test, what it has served. */
export function servedPersonas(fixture: Fixture): ServedPersonas {
  const processes: Child[] = [];
  let nc: NatsConnection | undefined;
  let serial = 0;
  afterAll(() => nc?.close());
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((child) => child.kill()));
  });
  const fresh = (what: string) => `${what}-${++serial}`;
  const serve = async (module: ToolModule, ...flags: string[]) => {
    const one = await servePersona(fixture.bus, module.file, ...flags);
    processes.push(one.child);
    return one;
  };
  const listed = async (name: string) => {
    nc ??= await connectNats(connectionTo({ servers: fixture.bus.natsUrl }));
    return (await listServedPersonas(nc, tenant)).find((one) => one.name === name);
  };
  const working = async (name: string) =>
    ((await listed(name))?.instances ?? []).filter(({ running }) => running !== null && running > 0);
  return {
    fresh,
    serve,
    listed,
    working,
    async served(turns, tools = '[]', more = {}) {
      const name = fresh('persona');
      const permissions = { rules: [{ tool: '*', action: 'allow' }] };
      const definition = { name, prompt: 'You work.', model: await scripted(turns), permissions, ...more };
      const module = await personaModule(definition, tools);
      return { name, module, definition, serve: (...flags) => serve(module, ...flags) };
    },
    async start(persona, more = {}) {
      const id = fresh('s');
      await fixture.bus.command(id, 'start', { prompt: 'Go.', persona, ...more });
      return id;
    },
    known: (name) => fixture.host.says(new RegExp(`"persona":"${name}".*a persona is announced`)),
    busy: (name, among) =>
      until('an instance works', async () => {
        const [first] = await working(name);
        return among.find(({ instance }) => instance === first?.instance);
      }),
    deltasOf(sessionId) {
      const deltas: Delta[] = [];
      fixture.bus.bare.subscribe(`cox.default.deltas.${sessionId}`, {
        callback: (_, message) => void deltas.push(message.json() as Delta),
      });
      return deltas;
    },
  };
}
