/**
 * How many tokens a model takes, and how many of them are kept free for its answer. A persona's `model.context_window`
 * goes before the table; what neither knows is taken for {@link DEFAULT_WINDOW}. A figure that is too large costs a
 * refused request now and then, which a compaction answers; one that is too small compacts earlier than it must.
 */
import type { CompactionSettings, Failure, ModelSettings, ResolvedCompaction } from '@coxswain/protocol';

/** The window of a model of which nothing is known. */
export const DEFAULT_WINDOW = 128_000;
/** Kept free for the answer, unless persona or model settings say otherwise; never more than a quarter of the window. */
const DEFAULT_RESERVE = 16_384;

/** Families of models and their windows. The first that fits the name behind the provider counts. */
const FAMILIES: ReadonlyArray<readonly [family: RegExp, window: number]> = [
  [/(^|\/)claude-/, 200_000],
  [/(^|\/)gpt-5/, 400_000],
  [/(^|\/)gpt-4\.1/, 1_047_576],
  [/(^|\/)(gpt-4o|gpt-4-turbo|chatgpt-4o)/, 128_000],
  [/(^|\/)gpt-4(-\d|$)/, 8_192],
  [/(^|\/)gpt-3\.5-turbo/, 16_385],
  [/(^|\/)o1-(mini|preview)/, 128_000],
  [/(^|\/)o[134](-|$)/, 200_000],
  [/(^|\/)gemini-1\.5-pro/, 2_097_152],
  [/(^|\/)gemini-/, 1_048_576],
];

/** The window of a model, and where the figure is from. */
export function windowOf(model: ModelSettings): Pick<ResolvedCompaction, 'window' | 'window_from'> {
  if (model.context_window !== undefined) return { window: model.context_window, window_from: 'persona' };
  const name = model.name.slice(model.name.indexOf('/') + 1).toLowerCase();
  // A script's or a journal's name says nothing of a window, whatever it is called.
  const isPlayed = /^(scripted|replay)\//.test(model.name);
  const known = isPlayed ? undefined : FAMILIES.find(([family]) => family.test(name));
  return known ? { window: known[1], window_from: 'model' } : { window: DEFAULT_WINDOW, window_from: 'default' };
}

/** What a run's compaction goes by. */
export function resolveCompaction(settings: CompactionSettings | undefined, model: ModelSettings): ResolvedCompaction {
  const { window, window_from } = windowOf(model);
  const reserve = settings?.reserve ?? Math.min(model.max_output_tokens ?? DEFAULT_RESERVE, Math.floor(window / 4));
  return {
    strategy: settings?.strategy ?? 'summary',
    keep_turns: settings?.keep_turns ?? 2,
    window,
    window_from,
    reserve,
  };
}

/** Why a persona's settings cannot be kept, or null. */
export function compactionProblem(settings: CompactionSettings | undefined, model: ModelSettings): Failure | null {
  const { window, reserve } = resolveCompaction(settings, model);
  if (reserve < window) return null;
  const message = `compaction.reserve is ${reserve} tokens, but the context window of ${model.name} has only ${window}`;
  return { code: 'provision_failed', message };
}
