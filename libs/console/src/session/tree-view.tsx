/** The tree of a session: its parent and its descendants. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionHandle, WireSessionTree, WireTreeNode } from '../browser-client.ts';
import { problemText } from '../page/outcome.tsx';
import { hashOf, sessionPlace } from '../page/place.ts';
import { countText, shortId, spentText } from '../page/wording.ts';
import { StateBadge } from './state-badge.tsx';

const READ_AGAIN_MS = 3_000;

/** The tree. It is read again periodically until the session has ended. */
export function TreeView({
  session,
  hasEnded,
}: {
  readonly session: SessionHandle;
  readonly hasEnded: boolean;
}): VNode {
  const [tree, setTree] = useState<WireSessionTree | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let left = false;
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const answer = await session.wire.tree();
        if (left) return;
        setTree(answer);
        setProblem(null);
      } catch (error) {
        if (!left) setProblem(problemText(error));
      }
      if (!left && !hasEnded) waiting = setTimeout(read, READ_AGAIN_MS);
    };
    void read();
    return () => {
      left = true;
      clearTimeout(waiting);
    };
  }, [session, hasEnded]);
  return (
    <div class="tree-view">
      {problem !== null && <p class="notice error">{problem}</p>}
      {tree === null && problem === null && <p class="empty">Loading the tree …</p>}
      {tree?.parent && (
        <p>
          Started by <a href={hashOf(sessionPlace(tree.parent.session))}>{shortId(tree.parent.session)}</a>
          {tree.parent.root !== tree.parent.session && (
            <>
              , below <a href={hashOf(sessionPlace(tree.parent.root))}>{shortId(tree.parent.root)}</a>
            </>
          )}
        </p>
      )}
      {tree && (
        <ul class="tree" aria-label="Tree of sessions">
          <TreeBranch node={tree.top} here={session.id} />
        </ul>
      )}
      {tree !== null && tree.left_out > 0 && <p class="faint">{countText(tree.left_out)} more are not shown.</p>}
    </div>
  );
}

function TreeBranch({ node, here }: { readonly node: WireTreeNode; readonly here: string }) {
  const { session_id: id, persona, state, stop_reason, approvals, cost_usd, problem, children } = node;
  const tokens = node.usage.input_tokens + node.usage.output_tokens;
  return (
    <li>
      <p class="tree-row">
        <a href={hashOf(sessionPlace(id))} aria-current={id === here ? 'page' : undefined}>
          {persona ?? 'session'} {shortId(id)}
        </a>
        {state !== null && <StateBadge state={state} stopReason={stop_reason} />}
        {approvals > 0 && <span class="badge waiting">{approvals} to decide</span>}
        {problem !== null && <span class="badge failed">{problem}</span>}
        <span class="faint">
          {countText(tokens)} tokens · {spentText(cost_usd, tokens)}
          {node.restart > 0 && ` · restart ${node.restart}`}
        </span>
      </p>
      {children.length > 0 && (
        <ul>
          {children.map((child) => (
            <TreeBranch key={child.session_id} node={child} here={here} />
          ))}
        </ul>
      )}
    </li>
  );
}
