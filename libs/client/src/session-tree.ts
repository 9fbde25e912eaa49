/** The tree of a session and its descendants, read from their journals only: it does not need a running host. */
import {
  type CamelCased,
  type EventOf,
  fromWire,
  isErrorCode,
  type JournalRecord,
  SessionTreeNames,
  type StateValue,
  type StopReason,
  type Usage,
} from '@coxswain/protocol';
import { SessionNotFoundError } from './client-errors.ts';
import { UsageCollector } from './usage-report.ts';

/** A session in a tree. */
export interface WireTreeNode {
  readonly session_id: string;
  /** The call of the parent that it works for; null at the top. */
  readonly call_id: string | null;
  /** The number of this restart of the call's work, from 1; 0 for its first child. */
  readonly restart: number;
  readonly persona: string | null;
  readonly model: string | null;
  /** Null if it has no records (yet). */
  readonly state: StateValue | null;
  readonly stop_reason: StopReason | null;
  /** The number of calls with a pending approval. */
  readonly approvals: number;
  /** Its own usage, without its children. */
  readonly usage: Usage;
  /** Its own cost in USD; null if a price is unknown. */
  readonly cost_usd: number | null;
  /** The error code if its journal cannot be read, otherwise null. */
  readonly problem: string | null;
  readonly children: readonly WireTreeNode[];
}

/** A tree and its ancestors. */
export interface WireSessionTree {
  /** The parent of the tree's top session, and the root of the whole tree; null without a parent. */
  readonly parent: { readonly session: string; readonly root: string } | null;
  readonly top: WireTreeNode;
  /** The number of known sessions that are not included because of the limit. */
  readonly left_out: number;
}

/** A session in a tree, in camelCase. */
export type TreeNode = CamelCased<WireTreeNode>;
/** A tree in camelCase. */
export type SessionTree = CamelCased<WireSessionTree>;

/** Converts a tree to camelCase. */
export function treeFromWire(tree: WireSessionTree): SessionTree {
  return fromWire(SessionTreeNames, tree as never) as unknown as SessionTree;
}

/** Reads the stored records of a session. */
export type ReadRecords = (sessionId: string) => AsyncIterable<{ readonly record: JournalRecord }>;

/** The maximum number of sessions in a tree. Those nearest to the top are included. */
export const TREE_SESSIONS_MAX = 1_000;
const READ_SIDE_BY_SIDE = 16;

interface Found {
  readonly node: Omit<WireTreeNode, 'children'>;
  readonly started: readonly EventOf<'child_started'>[];
  readonly parent: WireSessionTree['parent'];
}

/** A session of a tree and its descendants, each before its children. */
export function nodesOf<Node extends { readonly children: readonly Node[] }>(node: Node): Node[] {
  return [node, ...node.children.flatMap((child) => nodesOf(child))];
}

/**
 * Reads the tree below a session, generation by generation.
 * @throws SessionNotFoundError if the top session has no records; errors of reading its journal.
 */
export async function readTree(read: ReadRecords, sessionId: string): Promise<WireSessionTree> {
  const top = await find(read, sessionId, null);
  if (top.node.state === null) throw new SessionNotFoundError(sessionId);
  const found = new Map<string, Found>([[sessionId, top]]);
  let generation: readonly Found[] = [top];
  let leftOut = 0;
  while (generation.length > 0) {
    const wanted = generation.flatMap(({ started }) => started).filter(({ session }) => !found.has(session));
    const room = Math.max(0, TREE_SESSIONS_MAX - found.size);
    leftOut += Math.max(0, wanted.length - room);
    const next: Found[] = [];
    for (let start = 0; start < Math.min(wanted.length, room); start += READ_SIDE_BY_SIDE) {
      const some = wanted.slice(start, Math.min(start + READ_SIDE_BY_SIDE, room));
      next.push(...(await Promise.all(some.map((child) => findChild(read, child)))));
    }
    for (const one of next) found.set(one.node.session_id, one);
    generation = next;
  }
  return { parent: top.parent, top: withChildren(top, found), left_out: leftOut };
}

function withChildren({ node, started }: Found, found: ReadonlyMap<string, Found>): WireTreeNode {
  const children = started.flatMap(({ session }) => {
    const child = found.get(session);
    return child ? [withChildren(child, found)] : [];
  });
  return { ...node, children };
}

/** A child whose journal cannot be read is still included. */
async function findChild(read: ReadRecords, started: EventOf<'child_started'>): Promise<Found> {
  try {
    return await find(read, started.session, started);
  } catch (error) {
    if (error instanceof SessionNotFoundError)
      return { node: nodeOf(started.session, started), started: [], parent: null };
    const { code } = error as { readonly code?: unknown };
    const problem = typeof code === 'string' && isErrorCode(code) ? code : 'record_unreadable';
    return { node: { ...nodeOf(started.session, started), problem }, started: [], parent: null };
  }
}

async function find(read: ReadRecords, sessionId: string, started: EventOf<'child_started'> | null): Promise<Found> {
  const usage = new UsageCollector();
  const children: EventOf<'child_started'>[] = [];
  const parked = new Set<string>();
  let state: StateValue | null = null;
  let parent: WireSessionTree['parent'] = null;
  for await (const { record } of read(sessionId)) {
    usage.add(record);
    state = record.state;
    for (const event of record.events) {
      if (event.type === 'child_started') children.push(event);
      if (event.type === 'prompt_received' && event.parent)
        parent = { session: event.parent.session, root: event.parent.root };
      if (event.type === 'approval_requested') parked.add(event.call_id);
      if (event.type === 'approval_decided') parked.delete(event.call_id);
    }
  }
  const { persona, model, runs, usage: used, cost_usd } = usage.wireReport;
  const run = runs.at(-1);
  const node = {
    ...nodeOf(sessionId, started),
    ...(run ? { persona, model } : {}),
    state,
    stop_reason: run?.stop_reason ?? null,
    approvals: parked.size,
    usage: used,
    cost_usd,
  };
  return { node, started: children, parent };
}

function nodeOf(session_id: string, started: EventOf<'child_started'> | null): Omit<WireTreeNode, 'children'> {
  return {
    session_id,
    call_id: started?.call_id ?? null,
    restart: started?.restart ?? 0,
    persona: started?.persona ?? null,
    model: null,
    state: null,
    stop_reason: null,
    approvals: 0,
    usage: { input_tokens: 0, output_tokens: 0 },
    cost_usd: 0,
    problem: null,
  };
}
