/**
 * The choice of persona and model, in a start and in the changes of a fork; that of the model also in a prompt.
 * `chooseModel` (provision-session.ts) pins the model.
 */
import * as z from 'zod';
import { ModelName, Persona, StoredPersona } from '../personas/persona.ts';
import { ID_PATTERN } from '../wire/ids.ts';

const PersonaName = z.string().trim().regex(ID_PATTERN);

/** The members of a choice of persona and model. */
export const CHOICE_FIELDS = {
  persona: z.union([PersonaName, Persona]).optional(),
  provider: z
    .string()
    .trim()
    .regex(/^[a-z][a-z0-9-]{0,63}$/)
    .optional(),
  model: z.string().trim().min(1).max(1_024).optional(),
  base_url: z.url({ protocol: /^https?$/ }).optional(),
};

/** The same members in a journal. */
export const STORED_CHOICE_FIELDS = {
  ...CHOICE_FIELDS,
  persona: z.union([PersonaName, StoredPersona]).optional(),
};

/** The full `provider/name` of the requested model; undefined if none is requested. */
export function modelName(body: { provider?: string | undefined; model?: string | undefined }): string | undefined {
  if (body.model === undefined) return undefined;
  return body.provider === undefined ? body.model : `${body.provider}/${body.model}`;
}

/** Adds problems of the model's name; for `superRefine`. */
export function refineModelChoice(
  body: { provider?: string | undefined; model?: string | undefined },
  context: z.core.$RefinementCtx,
): void {
  if (body.provider !== undefined && body.model === undefined)
    context.addIssue({ code: 'custom', path: ['provider'], message: 'a provider needs a model' });
  const model = modelName(body);
  if (model !== undefined && !ModelName.safeParse(model).success)
    context.addIssue({
      code: 'custom',
      path: ['model'],
      message: 'write provider/name, or give both provider and model',
    });
}
