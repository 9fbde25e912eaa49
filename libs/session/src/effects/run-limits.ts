/**
 * The limits of a run: the stricter value of its start and its persona. A start never loosens a persona's limits, and a
 * host sets none: `BOUNDS` has the defaults. The machine applies the limits. In libs/turn: `isAtLastTurn`
 * (continuation.ts) for turns, `reachedThreshold` (budgets.ts) for budgets, `nextToStart` (batch.ts) for concurrent
 * calls, `delegationRefusal` (delegation.ts) for children, `outputRejection` (output.ts) for repairs, and
 * `personaWaitStarted` (persona-waits.ts) for the wait for a persona.
 */
import {
  BOUNDS,
  DEFAULT_THRESHOLDS,
  type Failure,
  type Limits,
  type ModelSettings,
  nanoUsdOf,
  type Persona,
  type Provision,
  type StartSettings,
} from '@coxswain/protocol';
import type { ProvisionSettings } from './provision-session.ts';

/** The members of a provision that bound the turns, the concurrent calls and the budgets of a run. */
export type RunLimits = Pick<Provision, 'max_turns' | 'parallel_calls' | 'budgets'>;

/** Resolves the limits of a run. If neither start nor persona sets one, a default applies; for a budget, no limit. */
export function runLimits(settings: StartSettings, persona: Persona): RunLimits {
  const tightest = (name: keyof Limits, ...more: readonly (number | undefined)[]): number | undefined => {
    const said = [persona.limits?.[name], settings.limits?.[name], ...more].filter((value) => value !== undefined);
    return said.length === 0 ? undefined : Math.min(...said);
  };
  const tokens = tightest('tokens');
  const usd = tightest('usd');
  const wallTimeMs = tightest('wall_time_ms');
  const limits = {
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { nano_usd: nanoUsdOf(usd) }),
    ...(wallTimeMs === undefined ? {} : { wall_time_ms: wallTimeMs }),
  };
  return {
    max_turns: tightest('max_turns', settings.max_turns) ?? BOUNDS.maxTurnsDefault,
    parallel_calls: tightest('parallel_calls') ?? BOUNDS.callsPerBatchMax,
    ...(Object.keys(limits).length === 0 ? {} : { budgets: { limits, thresholds: thresholdsOf(persona) } }),
  };
}

/** The name of the first limit in USD: of the run, or of a declared step; null without one. */
export function limitInMoney({ budgets }: RunLimits, { steps = [] }: Persona): string | null {
  if (budgets?.limits.nano_usd !== undefined) return 'limits.usd';
  const step = steps.find(({ max_usd }) => max_usd !== undefined);
  return step ? `max_usd of the step ${step.name}` : null;
}

/** The failure of a run with a limit in USD ({@link limitInMoney}), whose model has no price. */
export function priceUnknown({ name }: ModelSettings, limit: string): Failure {
  return {
    code: 'price_unknown',
    message: `${limit} needs the price of ${name}, which no price table contains: add a row {model: "${name}", input: …, output: …}, in USD per million tokens, to a file, and name the file in COX_PRICES`,
  };
}

/** The start's limits of turns, tokens, USD and time for the whole run, across its personas; empty without limits. */
export function wholeRunLimits({ limits = {}, max_turns }: StartSettings): Pick<Provision, 'run_limits'> {
  const { tokens, usd, wall_time_ms } = limits;
  const turns = [max_turns, limits.max_turns].filter((value) => value !== undefined);
  const whole = {
    ...(turns.length === 0 ? {} : { max_turns: Math.min(...turns) }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { nano_usd: nanoUsdOf(usd) }),
    ...(wall_time_ms === undefined ? {} : { wall_time_ms }),
  };
  return Object.keys(whole).length === 0 ? {} : { run_limits: whole };
}

/**
 * The output schema of the start, or else of the persona, and the number of turns that may repair an answer. Undefined
 * without a schema.
 */
export function pinnedOutput(settings: StartSettings, persona: Persona): Provision['output'] {
  const schema = settings.output ?? persona.output;
  if (!schema) return undefined;
  const said = [persona.limits?.output_repairs, settings.limits?.output_repairs].filter((one) => one !== undefined);
  return { schema, repairs: said.length === 0 ? BOUNDS.outputRepairsDefault : Math.min(...said) };
}

/** How long a model step waits for a live instance of its persona, in milliseconds. */
export function waitForPersonaMs(settings: StartSettings, persona: Persona): number {
  const said = [persona.limits, settings.limits].flatMap((limits) => limits?.wait_for_persona_ms ?? []);
  return said.length === 0 ? BOUNDS.waitForPersonaMs : Math.min(...said);
}

/**
 * Maximum number of open child sessions, and of generations below this session. A child gets fewer generations than its
 * parent; the number of its own children does not depend on the parent.
 */
export function delegationLimits(settings: ProvisionSettings, persona: Persona): NonNullable<Provision['delegation']> {
  const tightest = (name: 'children' | 'depth', most: number | undefined) =>
    Math.min(
      persona.limits?.[name] ?? Number.POSITIVE_INFINITY,
      settings.limits?.[name] ?? Number.POSITIVE_INFINITY,
      most ?? Number.POSITIVE_INFINITY,
    );
  const children = tightest('children', undefined);
  const depth = tightest('depth', settings.parent?.depth_left);
  return {
    children: Number.isFinite(children) ? children : BOUNDS.childrenDefault,
    depth: Number.isFinite(depth) ? depth : BOUNDS.depthDefault,
  };
}

function thresholdsOf(persona: Persona): number[] {
  // A run ends at 100 %, so that threshold is always included.
  return [...new Set([...(persona.budget_thresholds ?? DEFAULT_THRESHOLDS), 100])].sort((a, b) => a - b);
}
