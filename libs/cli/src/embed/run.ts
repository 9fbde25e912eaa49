/** Runs one prompt from its start to its result, in memory or with a client. */
import {
  type Client,
  InvalidOptionError,
  type OutputSource,
  type PersonaDefinition,
  type Prompted,
  type RunOptions,
  type RunResult,
  type StartedOutput,
  type TypedPersona,
} from '@coxswain/client';
import { checkRunArguments } from '@coxswain/client/transport';
import { loadPersona } from '@coxswain/personas';
import { withCodes } from './coded-errors.ts';
import type { CoxswainOptions } from './options.ts';
import { isPath, startCoxswain } from './start-coxswain.ts';

/** The options of a run in memory, in addition to its own settings. */
type InMemory = Pick<CoxswainOptions, 'models' | 'tools' | 'hooks' | 'personas' | 'env'>;

/** Settings of {@link run}. */
export type RunSettings<Schema = OutputSource> = RunOptions<Schema> &
  (
    | ({ readonly client?: undefined } & InMemory)
    /** Runs the prompt with this client, over NATS or HTTP. */
    | ({ readonly client: Client } & { readonly [Name in keyof InMemory]?: undefined })
  );

const IN_MEMORY = ['models', 'tools', 'hooks', 'personas', 'env'] as const satisfies readonly (keyof InMemory)[];

/**
 * Runs one prompt and returns its result.
 *
 * Without `client` the session is in memory and ends with the call. Calls that need an approval are denied unless
 * `onApproval` decides them. With `client` the session is on the client's bus and survives this program.
 * @param persona a definition; a path of a file, a folder or a module, which has a dot or a slash; or the name of one
 * of `personas`, or of a persona that the client's bus knows.
 * @throws InvalidOptionError naming the invalid argument; the errors of `Client.run` and `startCoxswain`.
 */
export async function run<Schema extends OutputSource = never, PersonaValue = unknown>(
  persona: string | (PersonaDefinition & TypedPersona<PersonaValue>),
  prompt: Prompted,
  settings: RunSettings<Schema> = {},
): Promise<RunResult<StartedOutput<Schema, PersonaValue>>> {
  checkRunArguments(persona, prompt, settings);
  const { client, models, tools, hooks, personas, env, ...others } = settings;
  const options = others as RunOptions<Schema>;
  const inMemory = { models, tools, hooks, personas, env };
  if (client !== undefined) {
    checkClient(client);
    const other = IN_MEMORY.find((name) => inMemory[name] !== undefined);
    if (other) throw new InvalidOptionError(`${other}: needs a run in memory, not client`, other);
    const isFile = typeof persona === 'string' && isPath(persona);
    return client.run<Schema, PersonaValue>(
      isFile ? (await withCodes(() => loadPersona(persona, '.'))).definition : persona,
      prompt,
      options,
    );
  }
  const coxswain = await startCoxswain({ bus: 'memory', ...inMemory });
  try {
    return await coxswain.run<Schema, PersonaValue>(persona, prompt, {
      onApproval: (approval) => approval.deny({ reason: 'no approver: run() has no onApproval' }),
      ...options,
    });
  } finally {
    await coxswain.close();
  }
}

/** @throws InvalidOptionError unless the client can run a prompt. */
function checkClient(client: unknown): void {
  if (typeof (client as Client | null)?.run === 'function') return;
  if (client instanceof Promise) {
    // The error below reports the mistake. A later failure of the connection must not end the program as an unhandled
    // rejection.
    client.catch(() => undefined);
    throw new InvalidOptionError('client: must be a client, not a promise of one: await connect()', 'client');
  }
  throw new InvalidOptionError('client: must be a client: await connect()', 'client');
}
