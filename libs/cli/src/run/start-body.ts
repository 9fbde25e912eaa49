/** Converts the flags of `cox run` into the body of a `start`. */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { BodyInput } from '@coxswain/client';
import { CommandId, ModelName, modeProblem, type PermissionRule, SessionId } from '@coxswain/protocol';
import { callerFolder, choosePersona, FolderTrust, type PersonaChoice, readCrew } from '../folders/mod.ts';
import { type Invocation, usageError } from '../line/mod.ts';
import { readMcpFile } from './mcp-file.ts';
import { readSchemaFile } from './schema-file.ts';

/** The variables for the API keys of providers, with the providers' names. Their values are never shown. */
export const KEY_VARIABLES: Readonly<Record<string, string>> = {
  ANTHROPIC_API_KEY: 'anthropic',
  OPENAI_API_KEY: 'openai',
  GOOGLE_GENERATIVE_AI_API_KEY: 'google',
  GEMINI_API_KEY: 'google',
  OPENAI_COMPATIBLE_API_KEY: 'openai-compatible',
};

/**
 * Builds the body of a start.
 * @param mayAsk whether the user may be asked for trust in the folder. False if standard input carries a protocol.
 * @throws CliError with exit code 2 naming the invalid or missing flag; `folder_not_trusted`.
 */
export async function startBody(
  { flags, env }: Pick<Invocation, 'flags' | 'env'>,
  prompt: string,
  mayAsk = true,
): Promise<BodyInput<'start'>> {
  const folder = callerFolder(env);
  const trust = new FolderTrust(folder, env, mayAsk);
  const personaFlag = flags.text('persona');
  const persona = personaFlag === undefined ? undefined : await choosePersona(personaFlag, folder, trust);
  const mode = flags.text('persona-mode');
  if (mode !== undefined) checkMode(mode, persona);
  const crew = await readCrew(
    persona,
    flags.inOrder(['crew']).map(({ value }) => value),
    folder,
    trust,
  );
  const model = modelOf(flags.text('model') ?? (env.COX_MODEL || undefined), folder);
  const personaMayNameModel = typeof persona === 'string' || persona?.persona.model !== undefined;
  if (model === undefined && !personaMayNameModel) throw noModel();
  const baseUrl = baseUrlOf(flags.text('base-url'));
  const mcp = flags.text('mcp');
  const rules: PermissionRule[] = flags.inOrder(['allow', 'ask', 'deny']).map(({ name, value }) => {
    // An unset variable in a script must not become a rule for every tool.
    if (value.trim() === '') throw usageError(`--${name} needs a glob on tool names; * stands for every tool`);
    return { tool: value, action: name };
  });
  const outputFile = flags.text('output-schema');
  const maxTurns = flags.whole('max-turns', { min: 1, max: 1_000_000 });
  return {
    prompt,
    root: resolve(folder, flags.text('root') ?? '.'),
    ...(persona === undefined ? {} : { persona: typeof persona === 'string' ? persona : persona.input }),
    ...(mode === undefined ? {} : { mode }),
    ...(crew.length === 0 ? {} : { personas: crew.map(({ input }) => input) }),
    ...(model === undefined ? {} : { model }),
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    ...(mcp === undefined ? {} : { mcp_servers: await readMcpFile(resolve(folder, mcp)) }),
    ...(rules.length === 0 ? {} : { permissions: { rules } }),
    ...(outputFile === undefined ? {} : { output: await readSchemaFile(resolve(folder, outputFile)) }),
    ...(maxTurns === undefined ? {} : { max_turns: maxTurns }),
    ...limitsOf(flags),
  };
}

/**
 * Requires that the folder of `--root` exists, for a session host in this process. A host on another machine has other
 * folders.
 * @throws CliError with exit code 2.
 */
export function expectRoot({ flags }: Pick<Invocation, 'flags'>, { root }: Pick<BodyInput<'start'>, 'root'>): void {
  if (!flags.on('root') || root === undefined || statSync(root, { throwIfNoEntry: false })?.isDirectory()) return;
  throw usageError(`--root ${root} is not a folder`);
}

// For a persona that is only named, the host knows its modes.
function checkMode(mode: string, persona: PersonaChoice | undefined): void {
  if (persona === undefined) throw usageError('--persona-mode goes with --persona: modes are a persona’s');
  const problem = typeof persona === 'string' ? null : modeProblem(persona.persona, mode);
  if (problem !== null) throw usageError(`--persona-mode: ${problem}`);
}

function limitsOf(flags: Invocation['flags']): Pick<BodyInput<'start'>, 'limits'> {
  const tokens = flags.whole('max-tokens', { min: 1, max: 1e12 });
  const usd = flags.amount('max-usd', { min: 0.000_001, max: 1_000_000 });
  const wallTimeMs = flags.duration('max-time', { minMs: 1, maxMs: 31_536_000_000 });
  const limits = {
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { usd }),
    ...(wallTimeMs === undefined ? {} : { wall_time_ms: wallTimeMs }),
  };
  return Object.keys(limits).length === 0 ? {} : { limits };
}

/** The address in `--base-url`. @throws CliError with exit code 2 if it is invalid. */
export function baseUrlOf(given: string | undefined): string | undefined {
  if (given !== undefined && !/^https?:\/\/\S+$/.test(given))
    throw usageError(`--base-url takes an http or https address, not "${given}"`);
  return given;
}

/** The id in `--id` for the new session. @throws CliError with exit code 2 if it is invalid. */
export function sessionIdOf({ flags }: Pick<Invocation, 'flags'>): string | undefined {
  const id = flags.text('id');
  if (id !== undefined && !SessionId.safeParse(id).success) {
    throw usageError('--id takes 1 to 64 characters of A-Z a-z 0-9 _ -');
  }
  return id;
}

/** The id in `--command-id` for the command. @throws CliError with exit code 2 if it is invalid. */
export function commandIdOf({ flags }: Pick<Invocation, 'flags'>): string | undefined {
  const id = flags.text('command-id');
  if (id !== undefined && !CommandId.safeParse(id).success) {
    throw usageError('--command-id takes 1 to 64 characters of A-Z a-z 0-9 _ -');
  }
  return id;
}

/** The error for a prompt without a model. */
export function noModel(): Error {
  const variables = Object.keys(KEY_VARIABLES).join(', ');
  return usageError(
    'no model: give --model provider/name (or set COX_MODEL), for example --model anthropic/claude-sonnet-4-5; ' +
      `the provider’s key is read from ${variables}`,
  );
}

/** The variables among {@link KEY_VARIABLES} that are set. */
export function keysFound(env: NodeJS.ProcessEnv): string[] {
  return Object.keys(KEY_VARIABLES).filter((name) => (env[name] ?? '').trim() !== '');
}

/**
 * Checks the name of a model. A relative path of a script or journal refers to the user's working directory. @throws
 * CliError with exit code 2 for an invalid name.
 */
export function modelOf(given: string | undefined, folder: string): string | undefined {
  if (given === undefined) return undefined;
  const parsed = ModelName.safeParse(given);
  if (!parsed.success) throw usageError(`--model ${given}: ${parsed.error.issues[0]?.message}`);
  const file = /^(scripted|replay)\/(.+)$/.exec(parsed.data);
  if (!file) return parsed.data;
  const path = resolve(folder, file[2] as string);
  // On another bus, the file may be the host's: then the name stays unchanged.
  return existsSync(path) ? `${file[1]}/${path}` : parsed.data;
}
