/** Asks for a token. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

/** The form. @param problem why the last one was not taken */
export function SignIn({
  problem,
  onToken,
}: {
  readonly problem: string | null;
  readonly onToken: (token: string) => void;
}): VNode {
  const [token, setToken] = useState('');
  return (
    <main class="sign-in">
      <h1>Coxswain</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== '') onToken(token.trim());
        }}
      >
        <p>
          <code>cox up</code> prints an address that lets you in; <code>cox env</code> has the token. For a gateway
          elsewhere, ask whoever runs it.
        </p>
        {problem !== null && (
          <p class="notice error" role="alert">
            {problem}
          </p>
        )}
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          value={token}
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={token.trim() === ''}>
          Sign in
        </button>
        <p class="faint">It is kept for this tab, until it is closed.</p>
      </form>
    </main>
  );
}
