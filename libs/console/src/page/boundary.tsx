/** An error boundary: if one part of the page cannot be rendered, the rest stays. */
import type { ComponentChildren, VNode } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import { problemText } from './outcome.tsx';

/** Renders its children, or the error that they caused. */
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
