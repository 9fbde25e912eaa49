/** `cox persona list`, `check` and `show`: personas in files. */
import { join, relative, resolve } from 'node:path';
import { printable } from '@coxswain/client';
import { type HookRegistration, nearestWord, type Persona, readPersonaHooks } from '@coxswain/protocol';
import { personaVersion } from '@coxswain/session';
import {
  callerFolder,
  choosePersona,
  PERSONAS_FOLDER,
  type PlaceIn,
  personaPaths,
  readPersona,
  whatLiesAt,
} from '../../folders/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, usageError } from '../../line/mod.ts';
import { standardStreams, table } from '../../terminal/mod.ts';
import { missingCode } from './persona-code.ts';

/** Lists the personas of files or folders. With `--served`, lists the personas that a bus serves. */
export const list: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  if (flags.on('served')) {
    if (args.length > 0) throw usageError('--served takes no file');
    // Imported on demand: reading files needs no client of the bus.
    const { listServed } = await import('./served.ts');
    return listServed(invocation);
  }
  const onlyOfBus = ['nats', 'nkey', 'state-dir', 'tenant'].find((name) => flags.on(name));
  if (onlyOfBus !== undefined) throw usageError(`--${onlyOfBus} needs --served: files need no bus`);
  return listFiles(callerFolder(env), args, flags.on('json'));
};

/** Checks persona files. Exits 1 if one is invalid, 2 if there are none. */
export const check: CommandRun = ({ flags, args, env }) => checkFiles(callerFolder(env), args, flags.on('json'));

/** Shows a persona as a session would pin it. Exits 1 for `persona_not_found`. */
export const show: CommandRun = ({ flags, args, env }) =>
  showOne(callerFolder(env), args[0] as string, flags.on('json'));

interface Read {
  /** The path relative to the working directory. */
  readonly path: string;
  readonly persona?: Persona;
  readonly problem?: string;
  /** The folder of the file, if the folder was read as a whole. */
  readonly among?: string;
  /** Converts a path in the definition into its place in the file. */
  readonly place?: PlaceIn;
}

/** In a folder that is read as a whole, a hand-off to an unknown persona is a problem: it is probably a typo. */
function checkHandoffs(found: readonly Read[]): Read[] {
  return found.map((one) => {
    const { path, persona, among, place } = one;
    const names = found.flatMap((other) => (other.among === among && other.persona ? [other.persona.name] : []));
    const index = persona?.handoffs?.findIndex((name) => !names.includes(name)) ?? -1;
    if (!persona || among === undefined || index < 0 || found.some((other) => other.among === among && !other.persona))
      return one;
    const name = persona.handoffs?.[index] as string;
    const meant = nearestWord(name, names);
    const hint = meant === null ? `; there are ${names.join(', ')}` : `; did you mean "${meant}"?`;
    const at = place?.(['handoffs', index]) ?? path;
    return { path, among, problem: `${at}: handoffs[${index}]: there is no persona ${name} in ${among}${hint}` };
  });
}

/**
 * In a folder that is read as a whole, a second persona with the same name is a problem. A session can have only one of
 * them.
 */
function checkNames(found: readonly Read[]): Read[] {
  return found.map((one, index) => {
    const { path, persona, among, place } = one;
    const first = found.find((other) => other.among === among && other.persona?.name === persona?.name);
    if (!persona || among === undefined || !first || found.indexOf(first) === index) return one;
    const at = place?.(['name']) ?? path;
    return { path, among, problem: `${at}: name: ${first.path} is named ${persona.name} already` };
  });
}

async function listFiles(folder: string, named: readonly string[], json: boolean): Promise<ExitCode> {
  const found = await readAll(folder, named);
  if (json) for (const one of found) standardStreams.out(`${JSON.stringify(rowOf('persona', one))}\n`);
  else {
    standardStreams.out(
      table(
        found.map(({ path, persona, problem }) =>
          persona
            ? [persona.name, personaVersion(persona), path, inOneLine(persona)]
            : ['(not valid)', '', path, problem ?? ''],
        ),
      ),
    );
    if (found.length === 0)
      standardStreams.err(`no persona in ${named.length > 0 ? named.join(', ') : `${PERSONAS_FOLDER}/`}\n`);
  }
  return EXIT.ok;
}

async function checkFiles(folder: string, named: readonly string[], json: boolean): Promise<ExitCode> {
  const found = checkNames(checkHandoffs(await readAll(folder, named)));
  if (found.length === 0) {
    const where = named.length > 0 ? named.join(', ') : `${PERSONAS_FOLDER}/`;
    throw usageError(`cox persona check needs a file or a folder with personas: ${where} has none`);
  }
  for (const one of found) {
    const { path, persona, problem } = one;
    const finding = persona ? `${path}: ${persona.name} ${personaVersion(persona)} is valid` : `${problem}`;
    standardStreams.out(`${json ? JSON.stringify(rowOf('persona_check', one)) : printable(finding)}\n`);
    const hooks = persona && !json ? hookRows(persona, personaVersion(persona)) : [];
    if (hooks.length > 0) standardStreams.out(table(hooks));
  }
  const wrong = found.filter(({ persona }) => !persona).length;
  if (wrong === 0) return EXIT.ok;
  const message = `persona_invalid: ${wrong} of ${found.length} ${found.length === 1 ? 'persona' : 'personas'}`;
  throw new CliError(EXIT.error, 'persona_invalid', message);
}

async function showOne(folder: string, name: string, json: boolean): Promise<ExitCode> {
  const chosen = await choosePersona(name, folder, null);
  if (typeof chosen === 'string') {
    const message = `persona_not_found: there is no ${name} in ${join(folder, PERSONAS_FOLDER)}`;
    throw new CliError(EXIT.error, 'persona_not_found', message);
  }
  const { persona } = chosen;
  const version = personaVersion(persona);
  if (json) standardStreams.out(`${JSON.stringify({ type: 'persona', version, definition: persona })}\n`);
  else standardStreams.out(inWords(persona, version));
  return EXIT.ok;
}

/** Reads the named files and folders, or the default folder of personas. */
async function readAll(folder: string, named: readonly string[]): Promise<Read[]> {
  const asked = named.length > 0 ? named : [PERSONAS_FOLDER];
  const read: Read[] = [];
  for (const name of asked) {
    const path = resolve(folder, name);
    const kind = await whatLiesAt(path);
    // The default folder may be missing; a named path may not.
    if (kind === 'nothing' && named.length === 0) continue;
    const isFolder = kind === 'folder of personas';
    const among = isFolder ? { among: relative(folder, path) || '.' } : {};
    for (const one of isFolder ? await personaPaths(path) : [path])
      read.push({ ...(await readOne(folder, one)), ...among });
  }
  return read;
}

async function readOne(folder: string, path: string): Promise<Read> {
  const shown = relative(folder, path) || '.';
  try {
    const { persona, place, folder: fileFolder } = await readPersona(path);
    const missing = await missingCode(persona, fileFolder, place);
    return missing === null ? { path: shown, persona, place } : { path: shown, problem: missing };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { path: shown, problem: error.message.replace(/^persona /, '') };
  }
}

/** The first line of the description, and the targets of hand-offs. */
function inOneLine({ description = '', handoffs = [] }: Persona): string {
  const [first = ''] = description.split('\n', 1);
  return [first, handoffs.length > 0 ? `→ ${handoffs.join(', ')}` : ''].filter((text) => text !== '').join('  ');
}

function rowOf(type: string, { path, persona, problem }: Read): object {
  if (!persona) return { type, path, valid: false, problem };
  const { name, description, handoffs } = persona;
  const hooks = (persona.hooks?.length ?? 0) + (persona.on_finish === undefined ? 0 : 1);
  const more = {
    ...(description ? { description } : {}),
    ...(handoffs?.length ? { handoffs } : {}),
    ...(hooks > 0 ? { hooks } : {}),
  };
  return { type, path, valid: true, name, version: personaVersion(persona), ...more };
}

function inWords(persona: Persona, version: string): string {
  const { name, description, model, modes, skills, tools, prompt, handoffs } = persona;
  const rows = [
    ['name', name],
    ['version', version],
    ['description', description?.trim()],
    ['model', typeof model === 'object' ? model.name : undefined],
    ['modes', Object.keys(modes ?? {}).join(', ')],
    ['skills', skills?.map((skill) => skill.name).join(', ')],
    ['hands off to', handoffs?.join(', ')],
    ['tools', tools && [...tools.allow, ...tools.deny.map((glob) => `not ${glob}`)].join(', ')],
  ].filter((row): row is [string, string] => Boolean(row[1]));
  const hooks = hookRows(persona, version);
  const hooksText = hooks.length === 0 ? '' : `\nhooks\n${table(hooks)}`;
  return `${table(rows)}${hooksText}${prompt.trim() === '' ? '' : `\n${printable(prompt.trimEnd())}\n`}`;
}

/** The persona's hooks in the order of evaluation at each point: id, point, condition and action. */
function hookRows(persona: Persona, version: string): string[][] {
  const read = readPersonaHooks(persona, version);
  if ('problem' in read) return [];
  return read.hooks.map(({ registration, handler }) => [
    `  ${registration.id}`,
    registration.pct === undefined ? registration.point : `${registration.point}(${registration.pct})`,
    [registration.step, registration.pattern].filter((one) => one !== undefined).join(' '),
    handler === undefined ? whatItSays(registration) : `asks ${handler}`,
  ]);
}

function whatItSays({ deny, max_output, returns }: HookRegistration): string {
  if (deny !== undefined) return `denies: ${deny}`;
  if (returns === undefined) return `cuts to ${max_output} characters`;
  return `returns ${JSON.stringify(returns)}`;
}
