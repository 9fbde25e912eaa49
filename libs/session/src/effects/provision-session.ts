/**
 * Provisions a run: resolves its persona, prompt, model, tools, hooks, price, permissions and limits. The outcome has
 * their values and fingerprints. `decideProvision` (provision.ts in libs/turn) decides what the outcome causes.
 */
import type {
  ApprovalNotices,
  Clock,
  Hooks,
  Models,
  RememberedRules,
  StopPredicates,
  ToolSource,
  Toolset,
  ToolsetSpec,
  WholeResults,
} from '@coxswain/ports';
import {
  type Ceiling,
  canonicalJson,
  type Failure,
  globMatches,
  type HookRegistration,
  type HookTable,
  type McpServers,
  type ModelSettings,
  modelName,
  type ParentLink,
  type Persona,
  type PersonaIdentity,
  type PinnedPrice,
  type PriceTable,
  type Provision,
  ProvisionOutcome,
  pinnedPrice,
  pinPermissions,
  problemSentences,
  type RememberedRule,
  readStrictly,
  type SessionRef,
  type StartSettings,
  type ToolDefinition,
} from '@coxswain/protocol';
import { unusableOutputSchema } from '@coxswain/protocol/check-output';
import type { Repins } from '@coxswain/turn';
import { sha256Hex } from '../journal/append-record.ts';
import type { PinnedPersona } from '../view/transcript.ts';
import { unknownPredicate } from './check-stop.ts';
import { compactionProblem, resolveCompaction } from './context-window.ts';
import { canDelegate, withCrew } from './crew-names.ts';
import { findPersona, identityOf, type KnownPersonas, personaNames, personaVersion } from './find-persona.ts';
import { buildHookTable, hooksOfPersona } from './hook-table.ts';
import {
  delegationLimits,
  limitInMoney,
  pinnedOutput,
  priceUnknown,
  type RunLimits,
  runLimits,
  wholeRunLimits,
} from './run-limits.ts';
import { selectTools, servedToolsIn, unreadableSkills, unrecordableTool } from './select-tools.ts';
import { ceilingOf, defaultRootIn, type PolicyPorts, rulesOfSession, standInsProblem } from './session-rules.ts';
import { promptOfMode, systemPromptOf } from './system-prompt.ts';
import { untilAnswered } from './until-answered.ts';

/** Ports that provisioning uses. */
export interface ProvisionPorts extends KnownPersonas, PolicyPorts {
  readonly clock: Clock;
  readonly models: Models;
  readonly tools: ToolSource;
  readonly hooks: Hooks;
  /**
   * Root folder, as an absolute path, of a session whose start names none. If the policy forbids it: `defaultRootIn`.
   */
  readonly defaultRoot: string;
  /** `provider/name` of the model for sessions whose start and persona name none. */
  readonly defaultModel?: string | undefined;
  /** Prices of models; the first matching row applies. Without a row, a model's cost is unknown. */
  readonly prices?: PriceTable | undefined;
  /** Permission rules that personas remember across sessions. Without it, rules end with their session. */
  readonly rememberedRules?: RememberedRules | undefined;
  /** Sends notices of pending approvals to an outside service. Without it, no notice is sent. */
  readonly approvalNotices?: ApprovalNotices | undefined;
  /** Stop conditions in code, by name. */
  readonly stopPredicates?: StopPredicates | undefined;
}

/** The settings of a session, and for a child session the link to its parent. */
export type ProvisionSettings = StartSettings & {
  readonly parent?: ParentLink | undefined;
  /** Whether the persona takes a run over, by a hand-off. Then the limits of the start cover the whole run. */
  readonly takesOver?: true | undefined;
};

/** Values that a session has pinned, and that this provisioning must not resolve again. */
export interface Pins {
  readonly definition?: Persona | undefined;
  readonly identity?: PersonaIdentity | undefined;
  readonly served?: true | undefined;
  /** The pinned tools that run in the process of a served persona. */
  readonly servedTools?: readonly ToolDefinition[] | undefined;
  readonly model?: ModelSettings | undefined;
  readonly root?: string | undefined;
  /** The mode, if `definition` is pinned. Otherwise the mode of the settings applies. */
  readonly mode?: string | undefined;
  /** Whether the session is a daemon, and its wake interval. A hand-off does not change it. */
  readonly daemon?: Daemon | undefined;
  /** Hooks of the persona that hands or has handed the session over: they apply to the rest of the turn of the hand-off. */
  readonly hooksBefore?: readonly HookRegistration[] | undefined;
}

/** The daemon settings of a session. */
type Daemon = Pick<Provision, 'daemon' | 'wake_interval_ms'>;

/**
 * The pinned values of an earlier provisioning, without those that a fork or a prompt asks to resolve again (`repins`).
 * @param chosenMode the mode of the session's settings. It applies if `repins` includes the mode.
 */
export function pinsOf(
  pinned: PinnedPersona | null,
  tools: readonly ToolDefinition[],
  repins: Repins | null,
  chosenMode?: string,
): Pins {
  const { definition, identity, served, model, root } = pinned ?? {};
  const mode = repins === 'mode' || repins === 'model_and_mode' ? chosenMode : pinned?.mode;
  const own = { definition, identity, mode, ...(pinned ? { daemon: daemonOf(pinned) } : {}) };
  const persona = served ? { ...own, served, servedTools: servedToolsIn(tools) } : own;
  if (repins === null || repins === 'mode') return { ...persona, model, root };
  return { root, ...(repins === 'persona' ? {} : persona) };
}

/** The pinned daemon settings of a session. */
export function daemonOf({ daemon, wake_interval_ms }: Daemon): Daemon {
  return { daemon, ...(wake_interval_ms === undefined ? {} : { wake_interval_ms }) };
}

/** The outcome, and the tools that were opened for it: null unless its status is `ok`. The caller closes them. */
export interface Provisioned {
  readonly outcome: ProvisionOutcome;
  readonly toolset: Toolset | null;
}

/**
 * Resolves what a run pins. The values in `pinned` stay; the tools are always opened again. While the bus is
 * unavailable, the reads of personas and remembered rules are repeated: the run waits and can be cancelled. Never
 * rejects: a failure is an outcome with a catalogued code, for an exception `provision_failed`.
 */
export async function provisionSession(
  ports: ProvisionPorts,
  ref: SessionRef,
  effectId: string,
  settings: ProvisionSettings,
  pinned: Pins,
  results: WholeResults,
  signal: AbortSignal,
  onFeedback?: ToolsetSpec['onFeedback'],
): Promise<Provisioned> {
  try {
    return await provision(ports, ref, effectId, settings, pinned, results, signal, onFeedback);
  } catch (error) {
    // An exception of a port fails this provisioning, not the session: its state is sound.
    return failedProvision(effectId, { code: 'provision_failed', message: (error as Error).message });
  }
}

async function provision(
  ports: ProvisionPorts,
  ref: SessionRef,
  effectId: string,
  settings: ProvisionSettings,
  pinned: Pins,
  results: WholeResults,
  signal: AbortSignal,
  onFeedback?: ToolsetSpec['onFeedback'],
): Promise<Provisioned> {
  const failed = (error: Failure) => failedProvision(effectId, error);
  const found = pinned.definition
    ? {
        definition: pinned.definition,
        served: pinned.served,
        servedTools: pinned.servedTools,
        identity: pinned.identity,
      }
    : await untilAnswered(ports.clock, signal, () => findPersona(ports, ref.tenant, settings.persona));
  if (!found) return cancelledProvision(effectId);
  if (isFailure(found)) return failed(found);
  const { definition: persona, served, servedTools } = found;
  const identity = 'source' in found ? identityOf(found) : found.identity;
  const model = pinned.model ?? chooseModel(settings, persona, ports.defaultModel);
  if (isFailure(model)) return failed(model);
  const compaction = compactionProblem(persona.compaction, model);
  if (compaction) return failed(compaction);
  const mode = pinned.definition ? pinned.mode : settings.mode;
  const modePrompt = promptOfMode(mode, persona);
  if (isFailure(modePrompt)) return failed(modePrompt);
  const limits = runLimits(settings, persona);
  const schema = settings.output ?? persona.output;
  const unusable = schema ? unusableOutputSchema(schema) : null;
  if (unusable !== null) return failed({ code: 'output_schema_invalid', message: unusable });
  const row = ports.prices?.find((candidate) => globMatches(candidate.model, model.name));
  const price = row && pinnedPrice(row);
  const inMoney = limitInMoney(limits, persona);
  if (inMoney !== null && !price) return failed(priceUnknown(model, inMoney));
  const predicate = unknownPredicate(persona, ports.stopPredicates ?? {});
  if (predicate) return failed(predicate);
  const own = hooksOfPersona(persona, personaVersion(persona));
  if (isFailure(own)) return failed(own);
  const before = (pinned.hooksBefore ?? []).filter((hook) => hook.persona !== persona.name);
  const hooks = buildHookTable(ports.hooks, ref.tenant, [...before, ...own]);
  if (isFailure(hooks)) return failed(hooks);
  const rules = rulesOfSession(ports, ref.tenant, settings);
  const root = pinned.root ?? settings.root ?? defaultRootIn(rules, ports.defaultRoot);
  const replaced = pinned.definition ? undefined : replacedServer(persona, served, settings);
  if (replaced) return failed(replaced);
  const mcpServers = mcpServersOf(persona, served, settings);
  const { stand_ins: standIns } = settings;
  const standing = standInsProblem(rules, settings);
  if (standing) return failed(standing);
  const serving = served && { name: persona.name, version: personaVersion(persona), tools: servedTools };
  const { skills } = persona;
  const [modelProblem, remembered, toolset] = await Promise.all([
    // The process that serves the persona checks its model.
    served ? null : ports.models.check(model, rules).catch(checkFailure),
    rulesOf(ports, ref, { persona: persona.name, root, identity }, signal),
    ports.tools.open({ ref, root, mcpServers, rules, standIns, served: serving, onFeedback, results, skills }, signal),
  ]);
  if (isFailure(toolset)) return failed(modelProblem ?? (isFailure(remembered) ? remembered : toolset));
  const withTools = async (): Promise<Provisioned> => {
    if (modelProblem) return failed(modelProblem);
    if (isFailure(remembered)) return failed(remembered);
    if (signal.aborted) return cancelledProvision(effectId);
    const selected = selectTools(toolset.tools, settings, persona);
    const namesOfPersonas = async () =>
      (await untilAnswered(ports.clock, signal, () => personaNames(ports, ref.tenant))) ?? [];
    const tools = await withCrew(selected, persona, settings.personas ?? [], namesOfPersonas);
    if (signal.aborted) return cancelledProvision(effectId);
    // Before `pin`, which would fail without the name of the tool.
    const problem = unreadableSkills(persona, toolset.tools) ?? unrecordableTool(tools);
    if (problem) return failed(problem);
    const notifies = ports.approvalNotices !== undefined;
    const daemon = pinned.daemon ?? ownDaemon(settings, persona);
    const ceiling = ceilingOf(settings, rules);
    const chosen = { identity, served, model, mode, modePrompt, root, daemon, ceiling };
    const base = pin(settings, persona, chosen, tools, hooks.table, limits, price, notifies);
    const resolved = remembered.length === 0 ? base : { ...base, remembered: [...remembered] };
    const outcome = { type: 'provision_outcome', effect_id: effectId, status: 'ok', provision: resolved } as const;
    // Read here, not by `readOutcome`, so that the tools of an invalid outcome are closed.
    const read = ProvisionOutcome.safeParse(outcome);
    return read.success ? { outcome: read.data, toolset } : failed(unrecordable(outcome));
  };
  let provisioned: Provisioned | null = null;
  try {
    provisioned = await withTools();
    return provisioned;
  } finally {
    // Also after an exception: the caller closes only the tools that it gets.
    if (!provisioned?.toolset) await toolset.close();
  }
}

function failedProvision(effect_id: string, error: Failure): Provisioned {
  return { outcome: { type: 'provision_outcome', effect_id, status: 'failed', error }, toolset: null };
}

function cancelledProvision(effect_id: string): Provisioned {
  return { outcome: { type: 'provision_outcome', effect_id, status: 'cancelled' }, toolset: null };
}

function unrecordable(outcome: ProvisionOutcome): Failure {
  const read = readStrictly(ProvisionOutcome, outcome);
  const problem = read.ok ? '' : problemSentences(read.problems).join('; ');
  return { code: 'provision_failed', message: `what was resolved cannot be recorded: ${problem}` };
}

// The failure of a check that threw. It must be a value, because the tools that open at the same time must be closed.
function checkFailure(error: Error): Failure {
  return { code: 'provision_failed', message: `the model could not be checked: ${error.message}` };
}

// The remembered rules. A deny rule must never be missed, so rules that cannot be read fail the provisioning.
async function rulesOf(
  { rememberedRules, clock }: ProvisionPorts,
  { tenant }: SessionRef,
  { persona, root, identity }: { persona: string; root: string; identity: PersonaIdentity | undefined },
  signal: AbortSignal,
): Promise<readonly RememberedRule[] | Failure> {
  if (!rememberedRules || !identity) return [];
  const holder = { persona, root, ...identity };
  try {
    return (await untilAnswered(clock, signal, () => rememberedRules.of(tenant, holder))) ?? [];
  } catch (error) {
    const message = `the remembered rules of persona ${persona} cannot be read: ${(error as Error).message}`;
    return { code: 'provision_failed', message };
  }
}

/** Whether a resolved value is a failure. Only failures have a code and a message. */
export function isFailure(value: object | string): value is Failure {
  return typeof value === 'object' && 'code' in value && 'message' in value;
}

/**
 * The model that provisioning pins: from the start, the persona, or the host's default, in this order; a failure if
 * none names a model. The persona's other model settings apply only to the model that the persona names; the `base_url`
 * of the start applies to any. In which process the model is asked: `modelsOfStep` (route-model-step.ts).
 */
export function chooseModel(
  settings: StartSettings,
  persona: Persona,
  defaultModel: string | undefined,
): ModelSettings | Failure {
  const asked = modelName(settings);
  const own: ModelSettings | undefined = typeof persona.model === 'object' ? persona.model : undefined;
  const base = settings.base_url === undefined ? {} : { base_url: settings.base_url };
  if (asked !== undefined) return { ...(own?.name === asked ? own : {}), name: asked, ...base };
  if (own) return { ...own, ...base };
  if (defaultModel !== undefined) return { name: defaultModel, ...base };
  return {
    code: 'model_not_given',
    message: 'neither the start nor the persona names a model; name one as provider/name',
  };
}

/**
 * The failure of a start with an MCP server of the same name as one of its persona: which one the author meant is unknown,
 * and rules of the persona name its tools.
 */
function replacedServer(
  { mcp_servers = {} }: Pick<Persona, 'mcp_servers'>,
  served: true | undefined,
  settings: Pick<StartSettings, 'mcp_servers'>,
): Failure | undefined {
  if (served) return undefined;
  const name = Object.keys(settings.mcp_servers ?? {}).find((own) => Object.hasOwn(mcp_servers, own));
  if (name === undefined) return undefined;
  return {
    code: 'mcp_server_failed',
    message: `mcp_servers.${name}: the persona has a server of this name; give this one another name`,
  };
}

/**
 * The MCP servers that this host opens: of the start, and of the persona unless another process serves the persona. In a
 * session of an earlier release both may have one of a name: that of the persona is used.
 */
export function mcpServersOf(
  { mcp_servers }: Pick<Persona, 'mcp_servers'>,
  served: true | undefined,
  settings: Pick<StartSettings, 'mcp_servers'> | null,
): McpServers {
  return { ...settings?.mcp_servers, ...(served ? {} : mcp_servers) };
}

// A child session is never a daemon: delegated work ends with its answer.
function ownDaemon({ parent }: ProvisionSettings, { daemon }: Persona): Daemon {
  return daemonOf({ daemon: daemon !== undefined && parent === undefined, wake_interval_ms: daemon?.wake_interval_ms });
}

/** Values resolved before the provision is built. Without a mode, `modePrompt` is an empty text. */
interface Chosen {
  readonly identity: PersonaIdentity | undefined;
  readonly served: true | undefined;
  readonly model: ModelSettings;
  readonly mode: string | undefined;
  readonly modePrompt: string;
  readonly root: string;
  readonly daemon: Daemon;
  /** Permission rules of ancestor sessions and of the host's policy. */
  readonly ceiling: readonly Ceiling[];
}

function pin(
  settings: ProvisionSettings,
  persona: Persona,
  { identity, served, model, mode, modePrompt, root, daemon, ceiling }: Chosen,
  tools: readonly ToolDefinition[],
  hooks: HookTable,
  limits: RunLimits,
  price: PinnedPrice | undefined,
  notifies: boolean,
): Provision {
  const output = pinnedOutput(settings, persona);
  const system = systemPromptOf(persona, tools, modePrompt, output?.schema);
  const pinned = {
    persona: { name: persona.name, version: personaVersion(persona) },
    ...(identity ? { identity } : {}),
    definition: persona,
    ...(served ? { served } : {}),
    ...(mode === undefined ? {} : { mode }),
    model,
    system_prompt: system,
    permissions: {
      ...pinPermissions(persona.permissions, settings.permissions),
      ...(ceiling.length > 0 ? { ceiling: [...ceiling] } : {}),
    },
    ...limits,
    ...(settings.takesOver ? wholeRunLimits(settings) : {}),
    ...(canDelegate(tools) ? { delegation: delegationLimits(settings, persona) } : {}),
    drain: persona.steering ?? { steering: 'all' as const, followups: 'one_at_a_time' as const },
    ...daemon,
    compaction: resolveCompaction(persona.compaction, model),
    root,
    ...(output ? { output } : {}),
    ...(notifies ? { notifies: true as const } : {}),
  };
  return {
    ...pinned,
    tools: [...tools],
    hooks,
    ...(price ? { price } : {}),
    fingerprints: {
      // Of all of `pinned`: also of the model, the permissions and the limits.
      persona: sha256Hex(canonicalJson(pinned)),
      prompt: sha256Hex(system),
      tools: sha256Hex(canonicalJson(tools)),
      hooks: sha256Hex(canonicalJson(hooks)),
      ...(price ? { price: sha256Hex(canonicalJson(price)) } : {}),
    },
  };
}
