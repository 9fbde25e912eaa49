/**
 * The context window of a model, and the tokens reserved for its answer. A persona's `model.context_window` has
 * precedence over the table; {@link DEFAULT_WINDOW} applies to unknown models. If the window is too large, some
 * requests are refused and a compaction follows. If it is too small, compaction starts earlier than necessary.
 */
import type { CompactionSettings, Failure, ModelSettings, ResolvedCompaction } from '@coxswain/protocol';

/** The window of an unknown model, in tokens. */
export const DEFAULT_WINDOW = 128_000;
/** Tokens reserved for the answer if neither `compaction.reserve` nor the model's `max_output_tokens` is set. */
const DEFAULT_RESERVE = 16_384;

/** Windows of model families, in tokens. The first pattern that matches the name without its provider applies. */
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

/** The window of a model, and the source of the value. */
export function windowOf(model: ModelSettings): Pick<ResolvedCompaction, 'window' | 'window_from'> {
  if (model.context_window !== undefined) return { window: model.context_window, window_from: 'persona' };
  const name = model.name.slice(model.name.indexOf('/') + 1).toLowerCase();
  // The name of a scripted or replayed model says nothing about its window.
  const isPlayed = /^(scripted|replay)\//.test(model.name);
  const known = isPlayed ? undefined : FAMILIES.find(([family]) => family.test(name));
  return known ? { window: known[1], window_from: 'model' } : { window: DEFAULT_WINDOW, window_from: 'default' };
}

/**
 * The compaction settings of a run, with defaults. Without a `reserve`, the reserve is the model's `max_output_tokens`
 * or {@link DEFAULT_RESERVE}, but at most a quarter of the window.
 */
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

/** The failure of a persona whose reserve fills the window of the model; otherwise null. */
export function compactionProblem(settings: CompactionSettings | undefined, model: ModelSettings): Failure | null {
  const { window, reserve } = resolveCompaction(settings, model);
  if (reserve < window) return null;
  const message = `compaction.reserve is ${reserve} tokens, but the context window of ${model.name} has only ${window}`;
  return { code: 'provision_failed', message };
}
