/**
 * The transitions of the machine, read from its definition, and the transitions of a step.
 */
import type { SessionEvent } from '@coxswain/protocol';
import { type AnyStateNode, type AnyTransitionDefinition, createActor } from 'xstate';
import { type SessionState, turnMachine } from '../src/mod.ts';

/** One transition object of the definition. A list of guarded alternatives has one for each. */
export interface Edge {
  readonly transition: AnyTransitionDefinition;
  /** `source: event [guard] → target`. */
  readonly name: string;
}

/** All transitions, in the order of the definition. */
export function machineEdges(): Edge[] {
  return stateNodes(turnMachine.root).flatMap((node) =>
    [...[...node.transitions.values()].flat(), ...(node.always ?? [])].map((transition) => ({
      transition,
      name: edgeName(node, transition),
    })),
  );
}

/** The names of all leaf states. */
export function leafNames(): string[] {
  return stateNodes(turnMachine.root)
    .filter((node) => node.type === 'atomic' || node.type === 'final')
    .map((node) => node.path.join('.'));
}

/** Applies a record's events to a state. Returns the transitions taken, and every leaf passed. */
export function edgesTaken(
  from: SessionState,
  events: readonly SessionEvent[],
  n: number,
): { readonly transitions: readonly AnyTransitionDefinition[]; readonly leaves: readonly string[] } {
  const transitions: AnyTransitionDefinition[] = [];
  const leaves: string[] = [];
  const actor = createActor(turnMachine, {
    input: { sessionId: from.context.session_id },
    snapshot: from,
    inspect: (seen) => {
      if (seen.type !== '@xstate.microstep') return;
      transitions.push(...seen._transitions);
      const { _nodes: nodes } = seen.snapshot as SessionState;
      leaves.push(...nodes.filter((node) => node.type === 'atomic').map((node) => node.path.join('.')));
    },
  }).start();
  for (const event of events) actor.send({ ...event, n, at_ms: 0 });
  return { transitions, leaves };
}

function stateNodes(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap((child) => stateNodes(child as AnyStateNode))];
}

function edgeName(node: AnyStateNode, transition: AnyTransitionDefinition): string {
  const source = node.path.join('.') || 'anywhere';
  const guard = typeof transition.guard === 'string' ? ` [${transition.guard}]` : '';
  const target = transition.target?.[0]?.path.join('.');
  return `${source}: ${transition.eventType || 'always'}${guard}${target === undefined ? '' : ` → ${target}`}`;
}
