/** Runs functions when the gateway starts to stop. */
import type { GatewayContext } from './gateway-context.ts';

/**
 * Calls `listener` when the gateway starts to stop, or immediately if it stops already. A request that was accepted before
 * the stop may arrive here late.
 * @returns a function that removes the listener.
 */
export function onStopping({ stopping }: Pick<GatewayContext, 'stopping'>, listener: () => void): () => void {
  if (stopping.aborted) listener();
  else stopping.addEventListener('abort', listener, { once: true });
  return () => stopping.removeEventListener('abort', listener);
}
