/** What the processes of personas do: they ask models, as hosts do that run a step themselves. */
import { type OfferedData, RunningWork } from '@coxswain/bus';
import { toolWork } from '@coxswain/handlers';
import { type Persona, TenantId } from '@coxswain/protocol';
import { personaStep } from '../../../libs/client/src/persona-step.ts';
import { StepLine } from '../../../libs/client/src/step-line.ts';
import { PERSONA_VERSION, type SessionPlan } from '../generator.ts';
import { SimModels } from '../sim-models.ts';
import type { ToolWorld } from '../sim-tools.ts';
import { type ServedProcess, type ServedWork, workClock } from './served-process.ts';

/** Steps of one process at once: fewer than there may be, so that some wait. */
const STEPS_AT_ONCE = 2;

/** The requests that are too long for a message: instances read them here, where they fetch them on NATS. */
export class LongRequests {
  readonly #offered = new Map<string, Buffer>();
  #count = 0;

  /** As `offerData`. */
  readonly offer: OfferedData['offer'] = (build) => {
    const subject = `_INBOX.host.c.${++this.#count}`;
    this.#offered.set(subject, build('request') ?? Buffer.alloc(0));
    return { subject, withdraw: () => void this.#offered.delete(subject) };
  };

  /** Reads a request. @throws Error if its host does not offer it any longer. */
  async fetch(subject: string): Promise<string> {
    const bytes = this.#offered.get(subject);
    if (!bytes) throw new Error('the host did not provide it');
    return bytes.toString('utf8');
  }
}

/** See the top of the file. */
export class StepWork {
  readonly #world: ToolWorld;
  readonly #personas: readonly Persona[];
  readonly #plans: readonly SessionPlan[];
  readonly #requests: LongRequests;
  readonly #started: (process: ServedProcess, key: string) => void;

  /** @param started is called for each step that begins. */
  constructor(
    world: ToolWorld,
    { personas, plans }: { readonly personas: readonly Persona[]; readonly plans: readonly SessionPlan[] },
    requests: LongRequests,
    started: (process: ServedProcess, key: string) => void,
  ) {
    this.#world = world;
    this.#personas = personas;
    this.#plans = plans;
    this.#requests = requests;
    this.#started = started;
  }

  /** The services of one process: every persona. */
  serve(process: ServedProcess): readonly ServedWork[] {
    const { history, plant } = this.#world;
    const models = new SimModels(this.#plans, process.clock, history, plant.shown);
    return this.#personas.map(({ name }) => {
      const line = new StepLine(STEPS_AT_ONCE);
      const step = personaStep(
        name,
        { fetch: (subject) => this.#requests.fetch(subject), readSocket: async () => undefined },
        models,
        line,
      );
      const noted = {
        ...step,
        run: (args: unknown, context: Parameters<typeof step.run>[1]) => {
          this.#started(process, context.idempotencyKey);
          return step.run(args, context);
        },
      };
      return {
        at: { kind: 'personas', tenant: TenantId.parse('default'), name, version: PERSONA_VERSION },
        work: new RunningWork((request) => toolWork(noted, request, 'step'), {
          tenant: 'default',
          clock: workClock(process.clock),
        }),
        onDraining: () => line.close(),
      };
    });
  }
}
