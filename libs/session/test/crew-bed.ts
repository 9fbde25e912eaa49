/**
 * A test bed for crews: each persona has its own model, and the tools of crews are next to the test's.
 */
import { combineToolSources, createCrewTools } from '@coxswain/adapter-tools';
import type { Model, ModelRequest, Models } from '@coxswain/ports';
import { type Json, type JsonObject, type PersonaInput, textOf } from '@coxswain/protocol';
import type { HostOptions, HostPorts, SessionHost } from '../src/mod.ts';
import { type Answer, ask, call, FakeModels, say } from './fake-model.ts';
import { TestBed } from './test-bed.ts';

/** The answers of a persona in order, the last one repeated; or a function of its first message. */
export type Part = readonly Answer[] | ((prompt: string) => readonly Answer[]);

/** A test bed with several personas. */
export class CrewBed extends TestBed {
  /** The answers of each persona, by its name. */
  parts: Readonly<Record<string, Part>> = {};
  /** Sessions whose model was aborted. */
  readonly stopped = new Set<string>();

  /** Starts a host. */
  crewHost(options: HostOptions = {}, other: Partial<HostPorts> = {}): Promise<SessionHost> {
    return this.host(options, { ...this.crewPorts(), ...other });
  }

  /** Starts a second host with the same partitions. */
  crewPorts(): Partial<HostPorts> {
    return { models: this.#models(), tools: combineToolSources([createCrewTools(), this.toolSource]) };
  }

  /** Starts a session with a persona and all others. */
  async begin(persona: string, settings: JsonObject = {}, session = 's1'): Promise<void> {
    const { persona: more = {}, ...rest } = settings;
    await this.start(
      {
        persona: { ...(this.#persona(persona) as unknown as JsonObject), ...(more as JsonObject) },
        personas: this.crew() as unknown as Json,
        ...rest,
      },
      { session },
    );
  }

  /** The settings of each persona without its name. */
  personas: Readonly<Record<string, Partial<PersonaInput>>> = {};

  crew(): PersonaInput[] {
    return Object.keys(this.parts).map((name) => this.#persona(name));
  }

  /** The child sessions of a session, in order. */
  async childrenOf(session = 's1'): Promise<string[]> {
    return (await this.eventsOf('child_started', session)).map((event) => event.session);
  }

  #persona(name: string): PersonaInput {
    return { name, prompt: name, permissions: { default: 'allow' }, ...this.personas[name] };
  }

  /** The number of answers of this persona in a session. After a hand-off, others gave some. */
  #ownAnswers({ sessionId, answered }: ModelRequest, persona: string): Pick<ModelRequest, 'answered'> {
    if (!answered) return {};
    const given = this.#givenBy.get(sessionId) ?? [];
    this.#givenBy.set(sessionId, given);
    given[answered.count] = persona;
    const others = given.slice(0, answered.count).filter((one) => one !== persona).length;
    return { answered: { ...answered, count: answered.count - others } };
  }
  readonly #givenBy = new Map<string, string[]>();

  #models(): Models {
    const clock = this.time.clock();
    const stream = (request: ModelRequest, ...rest: [Parameters<Model['stream']>[1], AbortSignal]) => {
      // The prompt of a mode does not change the persona.
      const [system = ''] = request.system.split('\n', 1);
      const part = this.parts[system] ?? [say('nothing to say')];
      const one = new FakeModels(clock);
      const [first] = request.messages;
      one.answers = typeof part === 'function' ? part(first?.role === 'user' ? textOf(first) : '') : part;
      this.models.requests.push(request);
      rest[1].addEventListener('abort', () => this.stopped.add(request.sessionId));
      return one.resolve().stream({ ...request, ...this.#ownAnswers(request, system) }, ...rest);
    };
    return { check: async () => null, resolve: () => ({ stream }) };
  }
}

/** An empty bed. Its journals are replayed at the end of the test. */
export const crewBed = (): CrewBed => new CrewBed();

/** An answer that delegates: `[persona, prompt, more arguments]`. */
export const delegate = (
  ...works: readonly (readonly [persona: string, prompt: string, more?: JsonObject])[]
): Answer =>
  ask(...works.map(([persona, prompt, more = {}], at) => call(`d${at + 1}`, 'delegate', { persona, prompt, ...more })));

/** An answer that sends a message to another session. */
export const tell = (to: string, body: string, more: JsonObject = {}): Answer =>
  ask(call('m1', 'send_message', { to, body, ...more }));

export { say };
