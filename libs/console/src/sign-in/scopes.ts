/** What the token of this tab may: what it may not is not offered. The gateway is who refuses. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** What a token may be allowed. */
export type Scope = 'read' | 'run' | 'steer' | 'approve' | 'admin';

/** Whether the token may do what a scope is for. `admin` may everything. */
export function isAllowed(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}

/** Of whoever is signed in. */
export const Scopes = createContext<readonly string[]>([]);

/** Asks for those of whoever is signed in. */
export function useMay(): (scope: Scope) => boolean {
  const scopes = useContext(Scopes);
  return (scope) => isAllowed(scopes, scope);
}
