/**
 * Personas in processes of their own: announcements, pauses, and the arguments of a model step. The parts of its answer
 * arrive as progress.
 */
import * as z from 'zod';
import { ToolDefinition } from '../tools/calls.ts';
import { listOf } from '../wire/containers.ts';
import { fingerprint, ID_PATTERN } from '../wire/ids.ts';
import { StepRequest } from './model-steps.ts';
import { Persona } from './persona.ts';

/** Bounds of one instance of a persona. */
export const PERSONA_SERVICE_BOUNDS = {
  /** Concurrent model steps of one instance: default and maximum. */
  stepsAtOnceDefault: 16,
  stepsAtOnceMax: 256,
  /** A question contains a request up to this size. A larger one is fetched from the host. */
  requestInlineMaxBytes: 192 * 1024,
  /** A whole request, as JSON. */
  requestMaxBytes: 64 * 1024 * 1024,
  /** Characters of one piece of an answer. Longer pieces are split. */
  partMaxChars: 512,
  /** A whole announcement, as JSON. */
  announcementMaxBytes: 768 * 1024,
  /** Tools of one persona. */
  toolsMax: 256,
} as const;

/** The `source` of a persona's own tools. */
export const PERSONA_TOOL_SOURCE = 'persona';

/** The announcement of a persona. The registry keeps it until another announcement or its removal. */
export const PersonaAnnouncement = z.strictObject({
  v: z.literal(1),
  /** When this version was first announced. */
  since: z.iso.datetime(),
  name: z.string().regex(ID_PATTERN),
  version: z.string().min(1).max(128),
  /** The pinned form, without MCP servers: they run in the service. */
  definition: Persona,
  /** The tools in its process. */
  tools: listOf(ToolDefinition).max(PERSONA_SERVICE_BOUNDS.toolsMax),
});
export type PersonaAnnouncement = z.infer<typeof PersonaAnnouncement>;

/** The mark of a paused persona: none of its model steps starts. */
export const PersonaPause = z.strictObject({
  v: z.literal(1),
  since: z.iso.datetime(),
  reason: z.string().max(2_048).optional(),
});
export type PersonaPause = z.infer<typeof PersonaPause>;

/** The arguments of a question for a model step: the request, or a reference for fetching it. */
export const ModelStepArgs = z.union([
  z.strictObject({ request: StepRequest }),
  z.strictObject({
    /** The inbox from which the instance fetches it, see `WorkFetch`. */
    fetch: z.strictObject({ subject: z.string().min(1).max(256) }),
  }),
]);
export type ModelStepArgs = z.infer<typeof ModelStepArgs>;

/** The token of a version in subjects: a version may contain any characters. */
export function versionToken(version: string): string {
  return fingerprint(version);
}
