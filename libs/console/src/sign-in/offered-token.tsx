/**
 * Handles a sign-in link in a tab that already has a token. Anyone can send a link: opening one must not change the
 * user's identity without a confirmation.
 */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { connect } from '../browser-client.ts';
import { Modal } from '../page/modal.tsx';

type Holder = { readonly name: string; readonly tenant: string; readonly scopes: readonly string[] };
/** The holders of both tokens; null if the gateway rejects the token. */
type Found = { readonly own: Holder | null; readonly other: Holder | null } | { readonly problem: string };

/**
 * Asks whether this tab should use the other token. It uses it without asking in two cases: the tab's own token is
 * invalid, such as after a restart of `cox up`. Or both belong to the same holder with the same scopes.
 */
export function OfferedToken({
  token,
  offered,
  onTake,
  onStay,
}: {
  readonly token: string;
  readonly offered: string;
  readonly onTake: (token: string) => void;
  readonly onStay: () => void;
}): VNode | null {
  const [found, setFound] = useState<Found | null>(null);
  useEffect(() => {
    let left = false;
    Promise.all([holderOf(token), holderOf(offered)]).then(
      ([own, other]) => {
        if (left) return;
        if (own === null || (other !== null && isSame(own, other))) onTake(offered);
        else setFound({ own, other });
      },
      (error: unknown) => {
        if (!left) setFound({ problem: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => {
      left = true;
    };
  }, [token, offered, onTake]);
  if (found === null) return null;
  const other = 'other' in found ? found.other : null;
  return (
    <Modal class="help" labelledBy="offered-title" onClose={onStay}>
      <h2 id="offered-title">The link contains another token</h2>
      {'problem' in found && <p>Its holder could not be determined: {found.problem}. You stay signed in as before.</p>}
      {'own' in found && other === null && <p>It is not valid. You stay signed in as {shown(found.own)}.</p>}
      {'own' in found && other !== null && (
        <p>
          You are {shown(found.own)}. With it you would act as {shown(other)}, who would be recorded as the actor.
        </p>
      )}
      <div class="buttons">
        <button type="button" class="primary" onClick={onStay}>
          Stay
        </button>
        {other !== null && (
          <button type="button" onClick={() => onTake(offered)}>
            Work as {other.name}
          </button>
        )}
      </div>
    </Modal>
  );
}

async function holderOf(token: string): Promise<Holder | null> {
  try {
    const client = await connect({ gateway: location.origin, token });
    try {
      return await client.whoami();
    } finally {
      await client.close();
    }
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'unauthorized') return null;
    throw error;
  }
}

function isSame(one: Holder, other: Holder): boolean {
  const said = ({ name, tenant, scopes }: Holder) => JSON.stringify([name, tenant, [...scopes].sort()]);
  return said(one) === said(other);
}

function shown(holder: Holder | null): VNode {
  return (
    <>
      <strong>{holder?.name ?? 'signed out'}</strong>
      {holder && ` (tenant ${holder.tenant}; may ${holder.scopes.join(', ')})`}
    </>
  );
}
