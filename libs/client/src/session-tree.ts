/** The tree of sessions below one, put together from their journals alone: it is there whether hosts run or not. */
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

/** One session of a tree. */
export interface WireTreeNode {
  readonly session_id: string;
  /** The call of its parent that it works for; null at the top. */
  readonly call_id: string | null;
  /** Which restart of that call's work it is, from 1; 0 for its first child. */
  readonly restart: number;
  readonly persona: string | null;
  readonly model: string | null;
  /** Null where its journal is not there (yet). */
  readonly state: StateValue | null;
  readonly stop_reason: StopReason | null;
  /** Calls that wait for a person. */
  readonly approvals: number;
  /** Of its own. */
  readonly usage: Usage;
  /** Of its own; null where a price was not known. */
  readonly cost_usd: number | null;
  /** Why nothing can be said of it: a code. */
  readonly problem: string | null;
  readonly children: readonly WireTreeNode[];
}

/** A tree, and what stands above it. */
export interface WireSessionTree {
  /** The parent of the root of this tree, and the root of the whole tree; null without a parent. */
  readonly parent: { readonly session: string; readonly root: string } | null;
  readonly top: WireTreeNode;
  /** Sessions that are not shown, as there are too many. */
  readonly left_out: number;
}

/** A session of a tree, with the names of TypeScript. */
export type TreeNode = CamelCased<WireTreeNode>;
/** A tree, with the names of TypeScript. */
export type SessionTree = CamelCased<WireSessionTree>;

/** A tree with the names of TypeScript. */
export function treeFromWire(tree: WireSessionTree): SessionTree {
  return fromWire(SessionTreeNames, tree as never) as unknown as SessionTree;
}

/** How a session's records are read: those that are stored now. */
export type ReadRecords = (sessionId: string) => AsyncIterable<{ readonly record: JournalRecord }>;

/** Sessions that one tree shows; those that are nearest to the top. */
export const TREE_SESSIONS_MAX = 1_000;
const READ_SIDE_BY_SIDE = 16;

interface Found {
  readonly node: Omit<WireTreeNode, 'children'>;
  readonly begun: readonly EventOf<'child_started'>[];
  readonly parent: WireSessionTree['parent'];
}

/** A session of a tree and all below it, each before its children. */
export function nodesOf<Node extends { readonly children: readonly Node[] }>(node: Node): Node[] {
  return [node, ...node.children.flatMap((child) => nodesOf(child))];
}

/**
 * Reads the tree below a session, generation by generation.
 * @throws SessionNotFoundError where the topmost session has no record; what reading its journal throws.
 */
export async function readTree(read: ReadRecords, sessionId: string): Promise<WireSessionTree> {
  const top = await find(read, sessionId, null);
  if (top.node.state === null) throw new SessionNotFoundError(sessionId);
  const found = new Map<string, Found>([[sessionId, top]]);
  let generation: readonly Found[] = [top];
  let leftOut = 0;
  while (generation.length > 0) {
    const wanted = generation.flatMap(({ begun }) => begun).filter(({ session }) => !found.has(session));
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

function withChildren({ node, begun }: Found, found: ReadonlyMap<string, Found>): WireTreeNode {
  const children = begun.flatMap(({ session }) => {
    const child = found.get(session);
    return child ? [withChildren(child, found)] : [];
  });
  return { ...node, children };
}

/** A child of which nothing can be read is one all the same. */
async function findChild(read: ReadRecords, begun: EventOf<'child_started'>): Promise<Found> {
  try {
    return await find(read, begun.session, begun);
  } catch (error) {
    if (error instanceof SessionNotFoundError) return { node: nodeOf(begun.session, begun), begun: [], parent: null };
    const { code } = error as { readonly code?: unknown };
    const problem = typeof code === 'string' && isErrorCode(code) ? code : 'record_unreadable';
    return { node: { ...nodeOf(begun.session, begun), problem }, begun: [], parent: null };
  }
}

async function find(read: ReadRecords, sessionId: string, begun: EventOf<'child_started'> | null): Promise<Found> {
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
    ...nodeOf(sessionId, begun),
    ...(run ? { persona, model } : {}),
    state,
    stop_reason: run?.stop_reason ?? null,
    approvals: parked.size,
    usage: used,
    cost_usd,
  };
  return { node, begun: children, parent };
}

function nodeOf(session_id: string, begun: EventOf<'child_started'> | null): Omit<WireTreeNode, 'children'> {
  return {
    session_id,
    call_id: begun?.call_id ?? null,
    restart: begun?.restart ?? 0,
    persona: begun?.persona ?? null,
    model: null,
    state: null,
    stop_reason: null,
    approvals: 0,
    usage: { input_tokens: 0, output_tokens: 0 },
    cost_usd: 0,
    problem: null,
  };
}
