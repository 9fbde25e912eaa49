/** What became of what somebody has just asked for: said in one line, to eyes and to screen readers. */
import type { VNode } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { isUndecided } from './same-command.ts';

/** What is said. */
export interface Outcome {
  readonly text: string;
  readonly failed: boolean;
}

/** Asks for something, and says what became of it: what is given where it went well, else why not. Resolves with whether it did. */
export type Ask = (what: string, doing: () => Promise<unknown>) => Promise<boolean>;

const SHOWN_MS = 8_000;

/** For a page that asks for things. */
export function useOutcome(): { readonly outcome: Outcome | null; readonly ask: Ask } {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    // What went well is soon old; what did not stays until the next try.
    if (outcome === null || outcome.failed) return;
    const forgetting = setTimeout(() => setOutcome(null), SHOWN_MS);
    return () => clearTimeout(forgetting);
  }, [outcome]);
  const ask = useCallback<Ask>(async (what, doing) => {
    try {
      await doing();
      setOutcome({ text: what, failed: false });
      return true;
    } catch (error) {
      const how = isUndecided(error) ? 'Outcome unknown' : 'Not done';
      setOutcome({ text: `${how}: ${problemText(error)}`, failed: true });
      return false;
    }
  }, []);
  return { outcome, ask };
}

/** An error in words, with its code where it has one. */
export function problemText(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const said = typeof message === 'string' && message !== '' ? message : String(error);
  return typeof code === 'string' && !said.startsWith(code) ? `${code}: ${said}` : said;
}

/** The line. */
export function OutcomeLine({ outcome }: { readonly outcome: Outcome | null }): VNode {
  return (
    <p class={outcome?.failed ? 'outcome failed' : 'outcome'} role="status" aria-live="polite">
      {outcome?.text ?? ''}
    </p>
  );
}
