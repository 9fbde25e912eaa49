/** What the form that starts a session checks, sends and offers. No drawing. */
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
/** What is wrong, by field. */
export type StartProblems = Partial<Record<StartField, string>>;

/** What can be offered: the folder of the gateway, and the demo once its files are written. */
export interface Offered {
  readonly options: OfferedStarts;
  readonly demo: DemoStart | null;
}

/** A gateway that offers nothing, or was not asked yet. */
export const NOTHING_OFFERED: Offered = { options: { folder: null, personas: [], hasDemo: false }, demo: null };

/** Values offered next to a field. */
const OFFERED_MAX = 6;

/** Checks what can be checked without a host. @returns a sentence for each field that is wrong. */
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

/** The body of the start. A persona of the folder goes along as its definition: hosts do not know it by name. */
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

/** The fields that play the demo. */
export function demoFields({ prompt, persona, model, root }: DemoStart): StartFields {
  return { prompt, persona: String(persona.name ?? ''), model, root };
}

/** The field that a refusal names, or null: `persona.prompt` is the persona. */
export function fieldOf(error: unknown): StartField | null {
  const { field } = (error ?? {}) as { readonly field?: unknown };
  const [member] = typeof field === 'string' ? field.split(/[.[]/, 1) : [];
  return member === 'prompt' || member === 'persona' || member === 'model' || member === 'root' ? member : null;
}

/** The message of an error without the name of the form's field, which the form shows in its own words. */
export function fieldProblemText(error: unknown): string {
  const { field, message } = (error ?? {}) as { readonly field?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  const prefix = `${fieldOf(error) === field ? field : ''}: `;
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

/** Personas to choose from: those of the folder first, then those that sessions have had, the newest first. */
export function offeredPersonas({ options }: Offered, sessions: readonly WireListedSession[]): string[] {
  return once([...options.personas.map(({ name }) => name), ...recent(sessions, 'persona')]);
}

/** Models to choose from: those that sessions have had, the newest first. */
export function offeredModels(sessions: readonly WireListedSession[]): string[] {
  return once(recent(sessions, 'model'));
}

/** What sessions have had, in the order of the list, in which the newest stands first. Demos are left out: their files go. */
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
