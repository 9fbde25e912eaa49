/** The checks, the request body and the suggestions of the start form. No rendering. */
import { type DemoStart, ID_PATTERN, ModelName } from '@coxswain/protocol';
import type { OfferedStarts, WireListedSession } from '../browser-client.ts';

/** The fields, as typed. */
export interface StartFields {
  readonly prompt: string;
  readonly persona: string;
  readonly model: string;
  readonly root: string;
}
/** A field by its name in the body of a start. */
export type StartField = keyof StartFields;
/** The problems by field. */
export type StartProblems = Partial<Record<StartField, string>>;

/** The suggestions: the personas of the gateway's directory, and the demo once its files are written. */
export interface Offered {
  readonly options: OfferedStarts;
  readonly demo: DemoStart | null;
}

/** Without suggestions: the gateway has none, or was not asked yet. */
export const NOTHING_OFFERED: Offered = { options: { folder: null, personas: [], hasDemo: false }, demo: null };

/** The maximum number of suggestions per field. */
const OFFERED_MAX = 6;

/** Checks the fields as far as possible without a host. @returns a sentence for each invalid field. */
export function startProblems(fields: StartFields, offered: Offered): StartProblems {
  const { persona, model, root } = trimmed(fields);
  const problems: StartProblems = {};
  if (fields.prompt.trim() === '') problems.prompt = 'Prompt: enter the task of the session.';
  const found = offered.options.personas.find(({ name }) => name === persona);
  if (found?.problem) problems.persona = `Persona: ${found.problem}`;
  else if (persona !== '' && !ID_PATTERN.test(persona))
    problems.persona = 'Persona: a name has 1 to 64 characters of A-Z a-z 0-9 _ -';
  if (model !== '' && !ModelName.safeParse(model).success)
    problems.model = 'Model: write provider/name, for example anthropic/claude-sonnet-4-5.';
  else if (model === '' && persona === '') problems.model = 'Model: name one as provider/name, or choose a persona.';
  else if (model === '' && found && found.problem === null && found.model === null)
    problems.model = `Model: the persona ${persona} names none; write provider/name.`;
  if (root !== '' && !/^(\/|[A-Za-z]:[\\/])/.test(root)) problems.root = 'Folder: write an absolute path on the host.';
  return problems;
}

/** Builds the body of the start. A persona of the directory is sent as its definition: hosts do not know it by name. */
export function startBody(fields: StartFields, { options, demo }: Offered): Record<string, unknown> {
  const { persona, model, root } = trimmed(fields);
  const definition =
    demo !== null && demo.persona.name === persona
      ? demo.persona
      : options.personas.find(({ name }) => name === persona)?.definition;
  return {
    prompt: fields.prompt,
    ...(persona === '' ? {} : { persona: definition ?? persona }),
    ...(model === '' ? {} : { model }),
    ...(root === '' ? {} : { root }),
  };
}

/** The fields that start the demo. */
export function demoFields({ prompt, persona, model, root }: DemoStart): StartFields {
  return { prompt, persona: String(persona.name ?? ''), model, root };
}

/** The field that a rejection names, or null: `persona.prompt` belongs to the persona. */
export function fieldOf(error: unknown): StartField | null {
  const { field } = (error ?? {}) as { readonly field?: unknown };
  const [member] = typeof field === 'string' ? field.split(/[.[]/, 1) : [];
  return member === 'prompt' || member === 'persona' || member === 'model' || member === 'root' ? member : null;
}

/** The message of an error without the field name, which the form shows as its label. */
export function fieldProblemText(error: unknown): string {
  const { field, message } = (error ?? {}) as { readonly field?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  const prefix = `${fieldOf(error) === field ? field : ''}: `;
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

/** Suggested personas: those of the directory first, then those of sessions, the newest first. */
export function offeredPersonas({ options }: Offered, sessions: readonly WireListedSession[]): string[] {
  return once([...options.personas.map(({ name }) => name), ...recent(sessions, 'persona')]);
}

/**
 * The note below the persona: what the folder offers, or that it does not have the typed one, which a process must then
 * serve. Null without a folder.
 */
export function personaNote(typed: string, { options: { folder, personas }, demo }: Offered): string | null {
  if (folder === null) return null;
  const where = `${folder}/personas`;
  const name = typed.trim();
  if (name !== '' && demo?.persona.name !== name && !personas.some((one) => one.name.startsWith(name)))
    return `${where} has no ${name}: a persona of the bus must have this name`;
  return personas.length === 0 ? `${where} has none` : `${personas.length} in ${where}`;
}

/** Suggested models: those of sessions, the newest first. */
export function offeredModels(sessions: readonly WireListedSession[]): string[] {
  return once(recent(sessions, 'model'));
}

/** Values of sessions in the order of the list, the newest first. Demos are excluded: their files are temporary. */
function recent(sessions: readonly WireListedSession[], what: 'persona' | 'model'): string[] {
  const own = sessions.filter(({ details }) => !/\/cox-demo-[^/]+\/script\.yaml$/.test(details?.model ?? ''));
  return own.flatMap(({ details }) => details?.[what] ?? []);
}

function once(values: readonly string[]): string[] {
  return [...new Set(values)].slice(0, OFFERED_MAX);
}

function trimmed({ persona, model, root }: StartFields): Omit<StartFields, 'prompt'> {
  return { persona: persona.trim(), model: model.trim(), root: root.trim() };
}
