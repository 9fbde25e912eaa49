/** The scopes of this tab's token. The page hides actions that they do not permit; the gateway enforces them. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** A scope of a token. */
export type Scope = 'read' | 'run' | 'steer' | 'approve' | 'admin';

/** Whether the scopes permit the actions of a scope. `admin` permits all. */
export function isAllowed(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}

/** The scopes of the signed-in user. */
export const Scopes = createContext<readonly string[]>([]);

/** Returns a function that checks the scopes of the signed-in user. */
export function useScopeCheck(): (scope: Scope) => boolean {
  const scopes = useContext(Scopes);
  return (scope) => isAllowed(scopes, scope);
}
