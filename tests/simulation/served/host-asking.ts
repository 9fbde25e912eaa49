/** The asking side of one host, as it is on NATS, over the bus of the simulation. */
import { type Asking, createAsking, onConnectionChange, type ServedAddress } from '@coxswain/bus';
import type { HookReply, HookRequest, ServedPersonas, ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import { type Persona, type SessionRef, TenantId } from '@coxswain/protocol';
import { createHookQuestions, type HookQuestions } from '../../../libs/adapters/nats/src/served/hook-questions.ts';
import { createPersonaSteps } from '../../../libs/adapters/nats/src/served/persona-steps.ts';
import { askOf, outcomeOf, probeOf } from '../../../libs/adapters/nats/src/served/tool-outcomes.ts';
import type { VirtualTime } from '../../../libs/session/test/virtual-time.ts';
import { PERSONA_VERSION } from '../generator.ts';
import type { History } from '../history.ts';
import { HOOK_SERVICE } from './hook-work.ts';
import type { ServedBus } from './served-bus.ts';
import { workClock } from './served-process.ts';
import type { ServedProcesses } from './served-processes.ts';
import { SimPresence } from './sim-presence.ts';
import type { LongRequests } from './step-work.ts';

const TENANT = TenantId.parse('default');

/** What hosts share of served work. */
export interface ServedSide {
  readonly time: VirtualTime;
  readonly bus: ServedBus;
  readonly processes: ServedProcesses;
  readonly history: History;
  readonly offers: LongRequests;
}

/** See the top of the file. */
export class HostAsking {
  readonly #asking: Asking;
  readonly #hooks: HookQuestions;
  readonly #presence: SimPresence;
  readonly #offers: LongRequests;
  readonly #history: History;
  readonly #host: string;

  constructor(host: string, { time, bus, processes, history, offers }: ServedSide) {
    const clock = time.clock(host);
    const connection = bus.connect(host, clock);
    const presence = new SimPresence(
      () => processes.all,
      () => time.elapsedMs,
    );
    onConnectionChange(connection, { restored: () => presence.restored() });
    this.#asking = createAsking(connection, presence, () => undefined, workClock(clock));
    this.#hooks = createHookQuestions(connection, this.#asking, () => undefined);
    this.#presence = presence;
    this.#offers = offers;
    this.#history = history;
    this.#host = host;
  }

  /** As the tool port's. */
  async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    return outcomeOf(await this.#asking.ask(askOf(call, toTool(call.tool)), signal));
  }

  /** As the tool port's. */
  async probe(key: string, ref: SessionRef, tool: string, epoch: number): Promise<ToolProbe> {
    const to = toTool(tool);
    const probe = probeOf(await this.#asking.probe({ key, ref, to, epoch }), (call) => askOf(call, to));
    if (probe.state === 'running') this.#history.push({ what: 'host', host: this.#host, did: 'attaches to a call' });
    return probe;
  }

  /** As the hook port's. */
  async askHook(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
    const { ref, effectId, registration } = request;
    const key = `${ref.tenant}.${ref.sessionId}.${effectId}.${registration.id}`;
    const about = { host: this.#host, session: ref.sessionId, key, timeoutMs: registration.timeout_ms };
    this.#history.push({ what: 'question', ...about, end: null });
    const reply = await this.#hooks.ask({ kind: 'hooks', tenant: TENANT, name: HOOK_SERVICE }, request, signal);
    this.#history.push({ what: 'question', ...about, end: reply.status === 'failed' ? reply.code : 'returned' });
    return reply;
  }

  /** The personas that instances serve. None has hooks of its own, and none is paused. */
  personas(known: readonly Persona[]): ServedPersonas {
    const found = (name: string) => known.find((one) => one.name === name);
    return {
      find(_tenant, name) {
        const definition = found(name);
        return definition ? { definition, version: PERSONA_VERSION } : null;
      },
      names: () => known.map(({ name }) => name),
      isServed: (tenant, name, version) =>
        found(name) !== undefined && this.#presence.isServed({ kind: 'personas', tenant, name, version }),
      pause: () => null,
      // Steps that wait look themselves.
      onChange: () => () => undefined,
      step: createPersonaSteps(this.#asking, this.#offers),
      askHook: () => Promise.reject(new Error('no persona has hooks')),
    };
  }

  /** As the tool port's. */
  stop(key: string, ref: SessionRef, tool: string, reason: string, epoch: number): Promise<boolean> {
    return this.#asking.stop({ key, ref, to: toTool(tool), epoch }, reason);
  }
}

function toTool(name: string): ServedAddress {
  return { kind: 'tools', tenant: TENANT, name };
}
