/** A bed for crews: every persona's model answers for itself, and the tools of crews are there beside the test's. */
import { combineToolSources, createCrewTools } from '@coxswain/adapter-tools';
import type { Model, ModelRequest, Models } from '@coxswain/ports';
import { type Json, type JsonObject, type PersonaInput, textOf } from '@coxswain/protocol';
import type { HostOptions, HostPorts, SessionHost } from '../src/mod.ts';
import { type Answer, ask, call, FakeModels, say } from './fake-model.ts';
import { TestBed } from './test-bed.ts';

/** What a persona answers, in order; the last one is given again and again. Or what it answers to its first message. */
export type Part = readonly Answer[] | ((prompt: string) => readonly Answer[]);

/** See the top of the file. */
export class CrewBed extends TestBed {
  /** Every persona's part, by its name. */
  parts: Readonly<Record<string, Part>> = {};
  /** Sessions whose model was told to stop while it worked. */
  readonly stopped = new Set<string>();

  /** A host of it. */
  crewHost(options: HostOptions = {}, other: Partial<HostPorts> = {}): Promise<SessionHost> {
    return this.host(options, { ...this.crewPorts(), ...other });
  }

  /** A host that is as sure of its partitions as the other. */
  crewPorts(): Partial<HostPorts> {
    return { models: this.#models(), tools: combineToolSources([createCrewTools(), this.toolSource]) };
  }

  /** Starts a persona's session with all others at hand. */
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

  /** What each persona has beside its name. */
  personas: Readonly<Record<string, Partial<PersonaInput>>> = {};

  crew(): PersonaInput[] {
    return Object.keys(this.parts).map((name) => this.#persona(name));
  }

  /** The sessions that a session has started, in order. */
  async childrenOf(session = 's1'): Promise<string[]> {
    return (await this.eventsOf('child_started', session)).map((event) => event.session);
  }

  #persona(name: string): PersonaInput {
    return { name, prompt: name, permissions: { default: 'allow' }, ...this.personas[name] };
  }

  /** How many of a session's answers were this persona's: where it has been handed over, others have given some. */
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
      // What a mode adds to a prompt makes nobody else of the persona.
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

/** An empty bed; its journals are replayed when the test has ended. */
export const crewBed = (): CrewBed => new CrewBed();

/** An answer that gives work to others: `[persona, prompt, more arguments]`. */
export const delegate = (
  ...works: readonly (readonly [persona: string, prompt: string, more?: JsonObject])[]
): Answer =>
  ask(...works.map(([persona, prompt, more = {}], at) => call(`d${at + 1}`, 'delegate', { persona, prompt, ...more })));

/** An answer that says something to another session. */
export const tell = (to: string, body: string, more: JsonObject = {}): Answer =>
  ask(call('m1', 'send_message', { to, body, ...more }));

export { say };
