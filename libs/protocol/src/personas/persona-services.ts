/**
 * Personas in processes of their own: announcements, heartbeats, requests for steps and calls, and replies. A step
 * follows the protocol of calls of bus tools; its parts arrive as progress.
 */
import * as z from 'zod';
import { ToolDefinition } from '../tools/calls.ts';
import { fingerprint, ID_PATTERN } from '../wire/ids.ts';
import { StepRequest } from './model-steps.ts';
import { Persona } from './persona.ts';

/** The queue group of a persona: its instances share steps and calls. */
export const PERSONA_QUEUE_GROUP = 'cox-personas';

/** Bounds of one instance of a persona. */
export const PERSONA_SERVICE_BOUNDS = {
  /** Concurrent steps of one instance: default and maximum. */
  stepsAtOnceDefault: 16,
  stepsAtOnceMax: 256,
  /** A question contains a request up to this size. A larger one is fetched from the host. */
  requestInlineMaxBytes: 192 * 1024,
  /** A whole request, as JSON. */
  requestMaxBytes: 64 * 1024 * 1024,
  /** One fetched part of it. */
  requestPartBytes: 256 * 1024,
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
  tools: z.array(ToolDefinition).max(PERSONA_SERVICE_BOUNDS.toolsMax),
});
export type PersonaAnnouncement = z.infer<typeof PersonaAnnouncement>;

/** The heartbeat of an instance: that of a tool, with the served version. */
export const PersonaBeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'gone']),
  since: z.iso.datetime().optional(),
  version: z.string().min(1).max(128),
  /** Number of current steps and calls. */
  running: z.number().int().nonnegative().optional(),
});
export type PersonaBeat = z.infer<typeof PersonaBeat>;

/** The mark of a paused persona: none of its steps starts. */
export const PersonaPause = z.strictObject({
  v: z.literal(1),
  since: z.iso.datetime(),
  reason: z.string().max(2_048).optional(),
});
export type PersonaPause = z.infer<typeof PersonaPause>;

/** The arguments of a question for a step: the request, or a reference for fetching it. */
export const ModelStepArgs = z.union([
  z.strictObject({ request: StepRequest }),
  z.strictObject({
    fetch: z.strictObject({
      subject: z.string().min(1).max(256),
      bytes: z.number().int().positive().max(PERSONA_SERVICE_BOUNDS.requestMaxBytes),
    }),
  }),
]);
export type ModelStepArgs = z.infer<typeof ModelStepArgs>;

/** Fetches the part of a request from this offset on. */
export const StepFetch = z.strictObject({ offset: z.number().int().nonnegative() });
export type StepFetch = z.infer<typeof StepFetch>;

/** The token of a version in subjects: a version may contain any characters. */
export function versionToken(version: string): string {
  return fingerprint(version);
}
