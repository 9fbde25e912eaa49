/**
 * Personas that processes of their own serve: what one announces, how it says that it lives, how it is asked for a step or a
 * call, and what it says back. A step is asked and followed as a call of a bus tool is; its parts come as progress.
 */
import * as z from 'zod';
import { ToolDefinition } from '../tools/calls.ts';
import { fingerprint, ID_PATTERN } from '../wire/ids.ts';
import { StepRequest } from './model-steps.ts';
import { Persona } from './persona.ts';

/** The queue group in which instances of a persona share its steps and calls. */
export const PERSONA_QUEUE_GROUP = 'cox-personas';

/** What an instance of a persona does and sends at most. */
export const PERSONA_SERVICE_BOUNDS = {
  /** Steps of one instance at once, where it does not say otherwise; and the most that it may say. */
  stepsAtOnceDefault: 16,
  stepsAtOnceMax: 256,
  /** A question contains requests of up to this size. Larger ones are fetched from the host. */
  requestInlineMaxBytes: 192 * 1024,
  /** A request, whole, as JSON. */
  requestMaxBytes: 64 * 1024 * 1024,
  /** What one fetch brings of it. */
  requestPartBytes: 256 * 1024,
  /** Characters of one piece of an answer; a model's longer ones are cut in several. */
  partMaxChars: 512,
  /** An announcement, whole, as JSON. */
  announcementMaxBytes: 768 * 1024,
  /** Tools of one persona. */
  toolsMax: 256,
} as const;

/** How the source of a persona's own tools is called. */
export const PERSONA_TOOL_SOURCE = 'persona';

/** The announcement of a persona. The registry keeps it until another announcement or its removal. */
export const PersonaAnnouncement = z.strictObject({
  v: z.literal(1),
  /** When this version was first announced. */
  since: z.iso.datetime(),
  name: z.string().regex(ID_PATTERN),
  version: z.string().min(1).max(128),
  /** As sessions pin it. Its MCP servers are left out: they run where it is served. */
  definition: Persona,
  /** The tools that run in its process. */
  tools: z.array(ToolDefinition).max(PERSONA_SERVICE_BOUNDS.toolsMax),
});
/** See {@link PersonaAnnouncement}. */
export type PersonaAnnouncement = z.infer<typeof PersonaAnnouncement>;

/** What an instance says of itself, again and again; as a tool's beat, with the version that it serves. */
export const PersonaBeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'gone']),
  since: z.iso.datetime().optional(),
  version: z.string().min(1).max(128),
  /** Steps and calls that it works on. */
  running: z.number().int().nonnegative().optional(),
});
/** See {@link PersonaBeat}. */
export type PersonaBeat = z.infer<typeof PersonaBeat>;

/** That a persona is paused: no new step of it starts. */
export const PersonaPause = z.strictObject({
  v: z.literal(1),
  since: z.iso.datetime(),
  reason: z.string().max(2_048).optional(),
});
/** See {@link PersonaPause}. */
export type PersonaPause = z.infer<typeof PersonaPause>;

/** The arguments of a question for a step: the request, or where it is fetched from. */
export const ModelStepArgs = z.union([
  z.strictObject({ request: StepRequest }),
  z.strictObject({
    fetch: z.strictObject({
      subject: z.string().min(1).max(256),
      bytes: z.number().int().positive().max(PERSONA_SERVICE_BOUNDS.requestMaxBytes),
    }),
  }),
]);
/** See {@link ModelStepArgs}. */
export type ModelStepArgs = z.infer<typeof ModelStepArgs>;

/** What is asked for more of a request: the part that begins there. */
export const StepFetch = z.strictObject({ offset: z.number().int().nonnegative() });
/** See {@link StepFetch}. */
export type StepFetch = z.infer<typeof StepFetch>;

/** What stands for a version in subjects: versions may have any characters. */
export function versionToken(version: string): string {
  return fingerprint(version);
}
