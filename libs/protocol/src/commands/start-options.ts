/**
 * Choices for a form that starts sessions.
 */
import * as z from 'zod';

/** A persona in the folder of a gateway. */
const OfferedPersona = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  /** Its model as `provider/name`; null if a start must name one, or if the file is not valid. */
  model: z.string().nullable(),
  definition: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'The `persona` of a start; null where the file is not valid.' }),
  problem: z.string().nullable().meta({ description: 'What is wrong with the file; null where it is valid.' }),
});

/** The choices of a gateway. A gateway without a folder has none. */
export const StartOptions = z.strictObject({
  folder: z.string().nullable().meta({ description: 'The folder in which it was started, absolute.' }),
  personas: z.array(OfferedPersona),
  has_demo: z.boolean().meta({ description: 'Whether `POST /v1/demo` prepares the demo.' }),
});
export type StartOptions = z.infer<typeof StartOptions>;

/** The members of a start that plays the demo. Its files exist already. */
export const DemoStart = z.strictObject({
  prompt: z.string(),
  root: z.string(),
  model: z.string(),
  persona: z.record(z.string(), z.unknown()),
});
export type DemoStart = z.infer<typeof DemoStart>;
