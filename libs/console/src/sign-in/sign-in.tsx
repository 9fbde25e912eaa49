/** The sign-in form. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

/** The form. @param problem Why the last token was not accepted. */
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
          <code>cox up</code> prints a sign-in link; <code>cox env</code> prints the token. For another gateway, ask its
          operator.
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
        <p class="faint">The token is kept until this tab is closed.</p>
      </form>
    </main>
  );
}
