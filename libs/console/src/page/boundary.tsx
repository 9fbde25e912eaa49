/** Where a part of the page cannot be drawn, the rest of it stays. */
import type { ComponentChildren, VNode } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import { problemText } from './outcome.tsx';

/** Shows its children, or why they cannot be shown. */
export function Boundary({ children }: { readonly children: ComponentChildren }): VNode {
  const [error, tryAgain] = useErrorBoundary();
  if (error === undefined || error === null) return <>{children}</>;
  return (
    <p class="notice error" role="alert">
      This cannot be shown: {problemText(error)}{' '}
      <button type="button" class="small" onClick={tryAgain}>
        Try again
      </button>
    </p>
  );
}
