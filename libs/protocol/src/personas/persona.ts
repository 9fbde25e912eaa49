/** Personas: named, versioned roles. One strict schema for files and code. */
import * as z from 'zod';
import { OnFinish, PersonaHooks } from '../hooks/persona-hooks.ts';
import { MaxOutput, ToolTraits } from '../tools/calls.ts';
import { Glob } from '../tools/patterns.ts';
import { WrittenToolSelection } from '../tools/tool-selection.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf, mapOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { nearestWord } from '../wire/nearest-word.ts';
import { OutputSchema } from './output-schema.ts';
import { Permissions } from './permissions.ts';
import { Skills } from './skills.ts';
import { Steps } from './steps.ts';
import { StopCondition } from './stop-conditions.ts';

/** `provider/model`: the provider adapter, and the name of its model. */
export const ModelName = z
  .string()
  .trim()
  .regex(/^[a-z][a-z0-9-]*\/.+$/, {
    error: 'a model is written provider/name, for example anthropic/claude-sonnet-4-5 or scripted/demo.yaml',
  })
  .max(1_024);

/** A model and its settings. */
export const ModelSettings = z.strictObject({
  name: ModelName,
  base_url: z.url({ protocol: /^https?$/ }).optional(),
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: z.number().int().positive().optional(),
  /**
   * Context window in tokens, for prompt and answer together, if the default for the model's family is missing or
   * wrong.
   */
  context_window: z.number().int().min(256).max(100_000_000).optional(),
  /** Passed to the provider unchanged, under the provider's own key. */
  provider_options: mapOf(z.string(), JsonObject).optional(),
});
export type ModelSettings = z.infer<typeof ModelSettings>;

/** One MCP server: a command with stdio, or a Streamable HTTP address. The usual `mcpServers` shape. */
export const McpServer = z.union([
  z.strictObject({
    command: z.string().trim().min(1),
    args: listOf(z.string()).default([]),
    env: mapOf(z.string(), z.string()).optional(),
    cwd: z.string().optional(),
  }),
  z.strictObject({
    url: z.url({ protocol: /^https?$/ }),
    headers: mapOf(z.string(), z.string()).optional(),
    type: z.enum(['http', 'streamable-http']).optional(),
  }),
]);
export type McpServer = z.infer<typeof McpServer>;

const ServerName = z.string().regex(/^[A-Za-z0-9_-]{1,48}$/);

/** MCP servers by name. Their tools are named `<server>__<tool>`. */
export const McpServers = mapOf(ServerName, McpServer, BOUNDS.mcpServersMax);
export type McpServers = z.infer<typeof McpServers>;

/** Settings of the tools that a glob matches: the length of shown results, and traits that override the tool's own. */
export const ToolSettings = z.strictObject({
  tool: Glob,
  max_output: MaxOutput.optional(),
  ...ToolTraits.omit({ long_running: true }).partial().shape,
});
export type ToolSettings = z.infer<typeof ToolSettings>;

/** Limits of each run of a session. */
export const Limits = z.strictObject({
  max_turns: z.number().int().min(1).max(1_000_000).optional(),
  /** Concurrent calls of one batch. */
  parallel_calls: z.number().int().min(1).max(BOUNDS.callsPerBatchMax).optional(),
  /** Tokens in and out, including cached ones. */
  tokens: z.number().int().positive().max(1e12).optional(),
  /** USD. Needs a known price of the model. */
  usd: z.number().min(0.000_001).max(1_000_000).optional(),
  /** Time of a run, with the time of tools and approvals, and without the time in which it is suspended or idle. */
  wall_time_ms: z.number().int().positive().max(31_536_000_000).optional(),
  /** Time that a model step waits for an instance, for a persona that other processes serve. */
  wait_for_persona_ms: z.number().int().positive().max(BOUNDS.waitForPersonaMaxMs).optional(),
  /** Maximum of concurrent child sessions. */
  children: z.number().int().min(0).max(BOUNDS.childrenMax).optional(),
  /** Maximum of generations below the session. */
  depth: z.number().int().min(0).max(BOUNDS.depthMax).optional(),
  /** Maximum of model turns for the repair of a final answer that does not fit the output schema. */
  output_repairs: z.number().int().min(0).max(BOUNDS.outputRepairsMax).optional(),
});
export type Limits = z.infer<typeof Limits>;

/** How older messages are replaced in the model's view, once the prompt would exceed the context window. */
export const CompactionStrategy = z.enum(['summary', 'clear_tool_results', 'notes']);
export type CompactionStrategy = z.infer<typeof CompactionStrategy>;

/** The compaction settings of a persona. */
export const CompactionSettings = z.strictObject({
  strategy: CompactionStrategy.default('summary'),
  /** Tokens of the window that are reserved for the answer. */
  reserve: z.number().int().positive().optional(),
  /** Number of newest turns that a compaction keeps unchanged, without the open one. */
  keep_turns: z.number().int().min(0).max(BOUNDS.keepTurnsMax).default(2),
});
export type CompactionSettings = z.infer<typeof CompactionSettings>;

/** Parts omitted from every request, regardless of the window. The journal keeps them. */
export const TransformContext = z
  .strictObject({
    /** Omits reasoning before the newest user message, except that of the newest answer. */
    drop_reasoning: z.boolean().optional(),
    /** Maximum length of the text of each tool result, in characters. */
    max_tool_result_chars: z.number().int().min(1).optional(),
    /**
     * Shows only the open turn and this number of turns before it. The summary of a compaction, the prompt of the run
     * and messages that no compaction replaces (`pinOf`, libs/turn) stay.
     */
    last_n_turns: z.number().int().min(0).max(1_000_000).optional(),
  })
  .refine((settings) => Object.values(settings).some((value) => value !== undefined), {
    error: 'needs at least one of drop_reasoning, max_tool_result_chars, last_n_turns',
  });
export type TransformContext = z.infer<typeof TransformContext>;

const Drain = z.enum(['all', 'one_at_a_time']);

/** A persona definition, as in a file or in code. Unknown keys are rejected. */
export const Persona = z.strictObject({
  name: z.string().trim().regex(ID_PATTERN, { error: 'a persona name must be 1 to 64 characters of A-Z a-z 0-9 _ -' }),
  /** Default: a hash of the content. */
  version: z.string().trim().min(1).max(128).optional(),
  description: z.string().max(4_096).optional(),
  model: z.union([ModelName.transform((name) => ({ name })), ModelSettings]).optional(),
  prompt: z.string().max(BOUNDS.commandBodyMaxBytes).default(''),
  /** Named additions to the prompt. `mode` of `start` or `prompt` selects one. */
  modes: mapOf(z.string().regex(ID_PATTERN), z.strictObject({ prompt: z.string() })).optional(),
  /** Whole skills, as a host needs them. A file contains the names of their folders instead. */
  skills: Skills.optional(),
  tools: WrittenToolSelection.optional(),
  /** Settings that override the traits of tools. The first matching entry applies. */
  tool_settings: listOf(ToolSettings).max(64).optional(),
  mcp_servers: McpServers.optional(),
  permissions: Permissions.optional(),
  limits: Limits.optional(),
  /** Percentages of a budget at which a run reports its usage. At 100 it always ends. */
  budget_thresholds: listOf(z.number().int().min(1).max(100)).max(16).optional(),
  steering: z.strictObject({ steering: Drain.default('all'), followups: Drain.default('one_at_a_time') }).optional(),
  compaction: CompactionSettings.optional(),
  transform_context: TransformContext.optional(),
  stop_when: listOf(StopCondition).max(BOUNDS.stopConditionsMax).optional(),
  hooks: PersonaHooks.optional(),
  on_finish: OnFinish.optional(),
  steps: Steps.optional(),
  /** The JSON Schema of the final answer. */
  output: OutputSchema.optional(),
  handoffs: listOf(z.string().regex(ID_PATTERN)).max(64).optional(),
  /** What happens to a call if its outcome is unknown after a crash. */
  on_unknown_outcome: z.enum(['interrupted', 'ask']).optional(),
  daemon: z
    .strictObject({
      /** An idle daemon wakes after this time. */
      wake_interval_ms: z.number().int().min(BOUNDS.wakeIntervalMinMs).max(BOUNDS.longWaitMaxMs).optional(),
    })
    .optional(),
});
export type Persona = z.infer<typeof Persona>;
/** A persona in a journal. Older releases recorded starts with more MCP servers, whose runs then failed. */
export const StoredPersona = Persona.extend({ mcp_servers: mapOf(ServerName, McpServer).optional() });
/** A persona before defaults. */
export type PersonaInput = z.input<typeof Persona>;

/** Why a persona does not have a mode, or null if it does. */
export function modeProblem(persona: Pick<Persona, 'name' | 'modes'>, mode: string): string | null {
  const modes = Object.keys(persona.modes ?? {});
  if (modes.includes(mode)) return null;
  const meant = nearestWord(mode, modes);
  const hint = meant === null ? '' : `; did you mean "${meant}"?`;
  return `the persona ${persona.name} has no mode ${mode}; it has: ${modes.join(', ') || 'none'}${hint}`;
}
