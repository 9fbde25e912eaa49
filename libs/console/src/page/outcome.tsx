/** The outcome of the last action in one line, also for screen readers. */
import type { VNode } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { isUndecided } from './same-command.ts';

/** The outcome of an action. */
export interface Outcome {
  readonly text: string;
  readonly failed: boolean;
}

/**
 * Runs an action and shows its outcome: `what` after a success, otherwise the error. Resolves with whether it
 * succeeded.
 */
export type RunAction = (what: string, doing: () => Promise<unknown>) => Promise<boolean>;

const SHOWN_MS = 8_000;

/** The outcome of the last action of a page, and a function that runs actions. */
export function useOutcome(): { readonly outcome: Outcome | null; readonly runAction: RunAction } {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    // A success is hidden after some seconds; a failure stays until the next attempt.
    if (outcome === null || outcome.failed) return;
    const forgetting = setTimeout(() => setOutcome(null), SHOWN_MS);
    return () => clearTimeout(forgetting);
  }, [outcome]);
  const runAction = useCallback<RunAction>(async (what, doing) => {
    try {
      await doing();
      setOutcome({ text: what, failed: false });
      return true;
    } catch (error) {
      const how = isUndecided(error) ? 'Outcome unknown' : 'Failed';
      setOutcome({ text: `${how}: ${problemText(error)}`, failed: true });
      return false;
    }
  }, []);
  return { outcome, runAction };
}

/** Formats an error, with its code if it has one. */
export function problemText(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const said = typeof message === 'string' && message !== '' ? message : String(error);
  return typeof code === 'string' && !said.startsWith(code) ? `${code}: ${said}` : said;
}

/** The line with the outcome. */
export function OutcomeLine({ outcome }: { readonly outcome: Outcome | null }): VNode {
  return (
    <p class={outcome?.failed ? 'outcome failed' : 'outcome'} role="status" aria-live="polite">
      {outcome?.text ?? ''}
    </p>
  );
}
