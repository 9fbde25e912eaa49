/** Personas that this process serves: for programs and tests without NATS. */
import { runHookHandler, runModelStep } from '@coxswain/handlers';
import type {
  HookQuestion,
  HookReply,
  HookRequest,
  Models,
  PersonaStep,
  ServedPersonas,
  StepEnd,
} from '@coxswain/ports';
import type { AnyHandler, Persona, TenantId } from '@coxswain/protocol';

/** One instance that serves a version of a persona. */
export interface MemoryPersonaInstance {
  readonly name: string;
  readonly version: string;
  /** Takes no more steps. Steps in progress complete. */
  stop(): void;
  /** Takes no more steps. Steps in progress are lost; hook questions move to another instance, or fail without one. */
  kill(): void;
}

/** The personas of one program. */
export interface MemoryPersonas extends ServedPersonas {
  /**
   * Announces a version of a persona and starts an instance that runs its steps with these models.
   * @param handlers the persona's own hook handlers, by hook id without the persona's prefix.
   */
  serve(
    tenant: TenantId,
    definition: Persona & { readonly version: string },
    models: Models,
    handlers?: Readonly<Record<string, AnyHandler>>,
  ): MemoryPersonaInstance;
  setPause(tenant: TenantId, name: string, pause: { readonly reason?: string | undefined } | null): void;
}

interface Instance extends MemoryPersonaInstance {
  readonly id: string;
  readonly tenant: TenantId;
  readonly models: Models;
  readonly handlers: Readonly<Record<string, AnyHandler>>;
  /** Callbacks that report the loss of this instance to open steps and hook questions. */
  readonly lose: Set<() => void>;
}

/** Creates an empty set of personas. Steps go to the instances of a version in turn (round robin). */
export function createMemoryPersonas(): MemoryPersonas {
  const announced = new Map<string, Persona & { readonly version: string }>();
  const pauses = new Map<string, { readonly reason?: string | undefined }>();
  const listeners = new Set<() => void>();
  let instances: readonly Instance[] = [];
  let serial = 0;
  let turn = 0;
  const keyOf = (tenant: TenantId, name: string) => `${tenant}.${name}`;
  const changed = () => {
    for (const listener of [...listeners]) listener();
  };
  const serving = (tenant: TenantId, name: string, version: string) =>
    instances.filter((one) => one.tenant === tenant && one.name === name && one.version === version);

  async function step(of: PersonaStep, onPart: Parameters<ServedPersonas['step']>[1], signal: AbortSignal) {
    const able = serving(of.ref.tenant, of.persona, of.version);
    const instance = able[turn++ % Math.max(1, able.length)];
    if (!instance) return { status: 'unserved' } as const;
    of.onTaken(instance.id);
    const stopping = new AbortController();
    const aborted = () => stopping.abort(signal.reason);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    let over = false;
    let lose: () => void = () => undefined;
    const lost = new Promise<StepEnd>((resolve) => {
      lose = () => {
        stopping.abort();
        resolve({ status: 'lost', instance: instance.id, cause: 'gone' });
      };
      instance.lose.add(lose);
    });
    const ended = runModelStep(
      instance.models,
      of.request,
      (part) => {
        if (!over && !(stopping.signal.aborted && !signal.aborted)) onPart(part);
      },
      stopping.signal,
    ).then((result): StepEnd => ({ status: 'ended', result }));
    const end = await Promise.race([ended, lost]);
    over = true;
    instance.lose.delete(lose);
    signal.removeEventListener('abort', aborted);
    return end;
  }

  async function askHook(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
    const { ref, registration, transcript, messages, ...rest } = request;
    const { persona = '', persona_version = '', id } = registration;
    const [instance] = serving(ref.tenant, persona, persona_version);
    const handler = instance?.handlers[id.slice(persona.length + 1)];
    if (!instance || !handler)
      return {
        status: 'failed',
        code: 'hook_unavailable',
        message: `no instance serves ${persona} ${persona_version}`,
      };
    const question: HookQuestion = {
      ...rest,
      ref,
      registration,
      payload: structuredClone(rest.payload),
      transcript: async () => transcript(),
      ...(messages ? { messages: async () => messages } : {}),
    };
    let lose: () => void = () => undefined;
    const lost = new Promise<null>((resolve) => {
      lose = () => resolve(null);
      instance.lose.add(lose);
    });
    const reply = await Promise.race([runHookHandler(handler, question, signal), lost]);
    instance.lose.delete(lose);
    if (reply !== null) return reply;
    if (serving(ref.tenant, persona, persona_version).length > 0 && !signal.aborted) return askHook(request, signal);
    return { status: 'failed', code: 'hook_unavailable', message: `${instance.id} has gone` };
  }

  return {
    find(tenant, name) {
      const definition = announced.get(keyOf(tenant, name));
      return definition ? { definition, version: definition.version } : null;
    },
    names: (tenant) =>
      [...announced.keys()]
        .filter((key) => key.startsWith(`${tenant}.`))
        .map((key) => key.slice(tenant.length + 1))
        .sort(),
    isServed: (tenant, name, version) => serving(tenant, name, version).length > 0,
    pause: (tenant, name) => pauses.get(keyOf(tenant, name)) ?? null,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    step,
    askHook,
    serve(tenant, definition, models, handlers = {}) {
      const { name, version } = definition;
      announced.set(keyOf(tenant, name), definition);
      const stop = () => {
        instances = instances.filter((one) => one !== instance);
        changed();
      };
      const instance: Instance = {
        id: `instance-${++serial}`,
        tenant,
        name,
        version,
        models,
        handlers,
        lose: new Set(),
        stop,
        kill() {
          stop();
          for (const lose of [...instance.lose]) lose();
        },
      };
      instances = [...instances, instance];
      changed();
      return instance;
    },
    setPause(tenant, name, pause) {
      if (pause) pauses.set(keyOf(tenant, name), pause);
      else pauses.delete(keyOf(tenant, name));
      changed();
    },
  };
}
