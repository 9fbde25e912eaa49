/** What a form that starts sessions can offer, beyond what earlier sessions have had. */
import * as z from 'zod';

/** A persona of the folder in which a gateway was started. */
const OfferedPersona = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  /** The model that it names, as `provider/name`; null if a start has to name one. */
  model: z.string().nullable(),
  definition: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'The `persona` of a start; null where the file is not valid.' }),
  problem: z.string().nullable().meta({ description: 'What is wrong with the file; null where it is valid.' }),
});

/** What a gateway offers to start with. A gateway that runs without a folder of its own offers nothing. */
export const StartOptions = z.strictObject({
  folder: z.string().nullable().meta({ description: 'The folder in which it was started, absolute.' }),
  personas: z.array(OfferedPersona),
  has_demo: z.boolean().meta({ description: 'Whether `POST /v1/demo` prepares the demo.' }),
});
/** See {@link StartOptions}. */
export type StartOptions = z.infer<typeof StartOptions>;

/** The members of a start that plays the demo, whose files have been written. */
export const DemoStart = z.strictObject({
  prompt: z.string(),
  root: z.string(),
  model: z.string(),
  persona: z.record(z.string(), z.unknown()),
});
/** See {@link DemoStart}. */
export type DemoStart = z.infer<typeof DemoStart>;
