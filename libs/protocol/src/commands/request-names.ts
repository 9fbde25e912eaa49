/**
 * The things that a request names. Every member of `start`, `prompt` and a persona needs a decision here: a new member
 * without one does not compile. {@link namesIn} lists the names for the policy of a host and for the check for secrets.
 */

import type { ForkChanges, ForkRequest } from '../journal/forks.ts';
import type { McpServer, ModelSettings, Persona } from '../personas/persona.ts';
import type { COMMAND_BODIES, StartSettings } from './commands.ts';
import { modelName } from './model-choice.ts';

/** The sections of a host's policy about requests. */
export type PolicySection = 'roots' | 'origins' | 'mcp_servers' | 'models' | 'personas' | 'run_command' | 'stand_ins';

/**
 * The decision about one member. `data`: it names nothing outside the session, such as a file, an address, a variable
 * or a program. `nested`: its own members have decisions.
 */
export type FieldDecision = PolicySection | 'data' | 'nested';

type StartField = keyof (typeof COMMAND_BODIES)['start']['shape'];
type PromptField = keyof (typeof COMMAND_BODIES)['prompt']['shape'];

/** The members of `start`. */
export const START_DECISIONS: Readonly<Record<StartField, FieldDecision>> = {
  id: 'data',
  actor: 'data',
  message_id: 'data',
  prompt: 'data',
  // Messages contain their files. A reference is the hash of bytes in the store.
  messages: 'data',
  fork: 'nested',
  persona: 'personas',
  personas: 'personas',
  provider: 'models',
  model: 'models',
  base_url: 'origins',
  mode: 'data',
  max_turns: 'data',
  limits: 'data',
  // The schema bounds its size, references and patterns.
  output: 'data',
  tools: 'data',
  stand_ins: 'stand_ins',
  mcp_servers: 'mcp_servers',
  permissions: 'run_command',
  root: 'roots',
  metadata: 'data',
  trace: 'data',
  // It only narrows.
  restricted: 'data',
};

/** The members of `prompt`. */
export const PROMPT_DECISIONS: Readonly<Record<PromptField, FieldDecision>> = {
  id: 'data',
  actor: 'data',
  body: 'data',
  messages: 'data',
  mode: 'data',
  provider: 'models',
  model: 'models',
  base_url: 'origins',
  if_running: 'data',
};

/** The members of `fork`. The session belongs to the tenant of the request. */
export const FORK_DECISIONS: Readonly<Record<keyof ForkRequest, FieldDecision>> = {
  session: 'data',
  n: 'data',
  changes: 'nested',
};

/** The members of `fork.changes`. */
export const FORK_CHANGE_DECISIONS: Readonly<Record<keyof ForkChanges, FieldDecision>> = {
  prompt: 'data',
  // Needs the scope approve: see allowanceOf().
  verdicts: 'data',
  result: 'data',
  persona: 'personas',
  provider: 'models',
  model: 'models',
  base_url: 'origins',
};

/** The members of a persona that a request contains. */
export const PERSONA_DECISIONS: Readonly<Record<keyof Persona, FieldDecision>> = {
  name: 'data',
  version: 'data',
  description: 'data',
  model: 'nested',
  prompt: 'data',
  modes: 'data',
  // Paths are names within the skill. The host reads no file for them.
  skills: 'data',
  tools: 'data',
  tool_settings: 'data',
  mcp_servers: 'mcp_servers',
  permissions: 'run_command',
  limits: 'data',
  budget_thresholds: 'data',
  steering: 'data',
  compaction: 'data',
  transform_context: 'data',
  stop_when: 'data',
  // Handlers run in the process that serves the persona. A host loads none for a persona of a request.
  hooks: 'data',
  on_finish: 'data',
  steps: 'data',
  output: 'data',
  handoffs: 'data',
  on_unknown_outcome: 'data',
  daemon: 'data',
};

/** The members of a persona's model. */
export const MODEL_DECISIONS: Readonly<Record<keyof ModelSettings, FieldDecision>> = {
  name: 'models',
  base_url: 'origins',
  temperature: 'data',
  max_output_tokens: 'data',
  context_window: 'data',
  provider_options: 'data',
};

/** One thing that a request names, with the path of its member, such as `persona.mcp_servers.sea`. */
export type NamedThing =
  | { readonly section: 'roots'; readonly field: string; readonly root: string }
  | {
      readonly section: 'models';
      readonly field: string;
      readonly model: string;
      /** The provider options in the request for this model. */
      readonly options?: ModelSettings['provider_options'];
    }
  | {
      readonly section: 'origins';
      readonly field: string;
      readonly url: string;
      /** The provider at this address; undefined if the request does not name it. */
      readonly provider: string | undefined;
      /** The request changes or forks an existing session, which may have more rights than the request. */
      readonly ofOtherSession: boolean;
    }
  | {
      readonly section: 'mcp_servers';
      readonly field: string;
      readonly server: McpServer;
      /** As for `origins`. */
      readonly ofOtherSession: boolean;
    }
  | { readonly section: 'personas'; readonly field: string }
  | {
      readonly section: 'run_command';
      readonly field: string;
      readonly permissions: NonNullable<StartSettings['permissions']>;
    }
  | { readonly section: 'stand_ins'; readonly field: string };

type Choice = Pick<ForkChanges, 'persona' | 'provider' | 'model' | 'base_url'>;
type Body = Partial<StartSettings> & { readonly fork?: ForkRequest | undefined };

/** All things that a `start` or `prompt` names; none for other verbs. The body has passed its schema. */
export function namesIn(verb: string, body: object): NamedThing[] {
  if (verb !== 'start' && verb !== 'prompt') return [];
  const { fork, personas, mcp_servers, permissions, stand_ins, root, ...choice } = body as Body;
  const ofOtherSession = verb === 'prompt';
  const changes = fork?.changes;
  return [
    ...(root === undefined ? [] : [{ section: 'roots' as const, field: 'root', root }]),
    ...namesInChoice(choice, '', ofOtherSession),
    ...(personas ?? []).flatMap((persona, at) => namesInPersona(persona, `personas.${at}`, ofOtherSession)),
    ...namesInServers(mcp_servers, '', ofOtherSession),
    ...namesInPermissions(permissions, ''),
    ...(stand_ins === undefined || Object.keys(stand_ins).length === 0
      ? []
      : [{ section: 'stand_ins' as const, field: 'stand_ins' }]),
    ...(changes ? namesInChoice(changes, 'fork.changes.', true) : []),
  ];
}

function namesInChoice(choice: Choice, at: string, ofOtherSession: boolean): NamedThing[] {
  const { persona, base_url: url } = choice;
  const inline = typeof persona === 'object' ? persona : undefined;
  const model = modelName(choice);
  const provider = providerOf(model ?? (typeof inline?.model === 'object' ? inline.model.name : undefined));
  return [
    ...(inline ? namesInPersona(inline, `${at}persona`, ofOtherSession) : []),
    ...(model === undefined ? [] : [{ section: 'models' as const, field: `${at}model`, model }]),
    ...(url === undefined
      ? []
      : [{ section: 'origins' as const, field: `${at}base_url`, url, provider, ofOtherSession }]),
  ];
}

function namesInPersona(persona: Persona, at: string, ofOtherSession: boolean): NamedThing[] {
  const { mcp_servers, permissions } = persona;
  const model: ModelSettings | undefined = persona.model;
  return [
    { section: 'personas', field: at },
    ...(model
      ? [{ section: 'models' as const, field: `${at}.model`, model: model.name, options: model.provider_options }]
      : []),
    ...(model?.base_url === undefined
      ? []
      : [
          {
            section: 'origins' as const,
            field: `${at}.model.base_url`,
            url: model.base_url,
            provider: providerOf(model.name),
            ofOtherSession,
          },
        ]),
    ...namesInServers(mcp_servers, `${at}.`, ofOtherSession),
    ...namesInPermissions(permissions, `${at}.`),
  ];
}

function namesInServers(servers: Persona['mcp_servers'], at: string, ofOtherSession: boolean): NamedThing[] {
  return Object.entries(servers ?? {}).map(([name, server]) => ({
    section: 'mcp_servers',
    field: `${at}mcp_servers.${name}`,
    server,
    ofOtherSession,
  }));
}

function namesInPermissions(permissions: Persona['permissions'], at: string): NamedThing[] {
  return permissions ? [{ section: 'run_command', field: `${at}permissions`, permissions }] : [];
}

/** The provider of `provider/name`: the part before the first slash, or the whole text without a slash. */
export function providerOf(model: string | undefined): string | undefined {
  return model?.split('/', 1)[0];
}
