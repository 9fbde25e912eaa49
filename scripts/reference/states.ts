/** The reference of states: diagrams and tables, from the definition of the turn machine. */
import { MACHINE_VERSION, turnMachine } from '@coxswain/turn';
import { code, generatedFrom, table } from './markdown.ts';

type Node = (typeof turnMachine)['root'];

/** A transition of a state. With a null target, the machine handles the event and stays in the state. */
interface Way {
  readonly from: Node;
  readonly on: string;
  readonly guard: string | null;
  readonly to: Node | null;
}

/** The text of docs/reference/states.md. */
export function stateReference(): string {
  const { root } = turnMachine;
  const tops = Object.values(root.states) as Node[];
  return [
    generatedFrom('libs/turn/src/machine/chart.ts'),
    '# States\n',
    `The states and transitions of the turn machine, version ${MACHINE_VERSION}. [Sessions and turns](../concepts/sessions-and-turns.md#the-machine)`,
    'explains the top-level states. The events are those of the [journal](subjects.md#events). A guard is in brackets. If an event has several',
    'transitions, the first one whose guard is true is taken.\n',
    table(
      ['Tag', 'Meaning'],
      [
        [code('seam'), 'a [seam](seams.md), where queued messages are delivered'],
        [code('wait'), 'the session waits for a result, a person or a timer'],
        [code('ended'), 'the run has ended; the session accepts a new prompt'],
        ['none', 'the session passes through the state within one record'],
      ],
    ),
    '',
    '## Overview\n',
    ...mermaid(overview(tops)),
    '## From every state\n',
    'During a run these transitions are possible in every state, unless the state has its own transition for the event.\n',
    waysTable(waysOf(root), false),
    '',
    ...tops.flatMap(chapter),
  ].join('\n');
}

function chapter(top: Node): string[] {
  const children = Object.values(top.states) as Node[];
  const own = waysOf(top);
  const ways = children.flatMap(waysOf);
  return [
    `## ${top.key}\n`,
    ...(children.length > 0 ? mermaid(detail(top, children)) : []),
    ...(top.tags.length > 0 ? [`Tags: ${top.tags.map(code).join(', ')}\n`] : []),
    ...(children.length > 0
      ? [
          table(
            ['State', 'Tags'],
            children.map((child) => [code(child.key), child.tags.map(code).join(', ')]),
          ),
          '',
        ]
      : []),
    ...(own.length > 0
      ? [...(children.length > 0 ? ['In each of its states:\n'] : []), waysTable(own, false), '']
      : []),
    ...(ways.length > 0 ? [...(own.length > 0 ? ['In single states:\n'] : []), waysTable(ways, true), ''] : []),
  ];
}

function waysTable(ways: readonly Way[], withSource: boolean): string {
  const rows = ways.map(({ from, on, guard, to }) => [
    ...(withSource ? [code(from.key)] : []),
    on === '' ? '(immediately)' : code(on),
    guard === null ? '' : code(guard),
    to === null ? '(stays)' : code(nameOf(to)),
  ]);
  return table([...(withSource ? ['State'] : []), 'Event', 'Guard', 'Target'], rows);
}

function waysOf(node: Node): Way[] {
  return [...[...node.transitions.values()].flat(), ...(node.always ?? [])].map((transition) => ({
    from: node,
    on: transition.eventType,
    guard: typeof transition.guard === 'string' ? transition.guard : null,
    to: (transition.target?.[0] as Node | undefined) ?? null,
  }));
}

// ---- diagrams ----

function mermaid(lines: readonly string[]): string[] {
  return ['```mermaid', 'stateDiagram-v2', ...lines.map((line) => `  ${line}`), '```', ''];
}

/** The diagram of the top-level states. An arrow combines all transitions between two of them. */
function overview(tops: readonly Node[]): string[] {
  const arrows = new Map<string, Set<string>>();
  for (const top of tops) {
    for (const way of [top, ...(Object.values(top.states) as Node[])].flatMap(waysOf)) {
      const target = way.to && topOf(way.to);
      if (!target || target === top) continue;
      const arrow = `${top.key} --> ${target.key}`;
      arrows.set(arrow, (arrows.get(arrow) ?? new Set()).add(way.on || 'at once'));
    }
  }
  return [
    `[*] --> ${topOf(turnMachine.root.initial.target[0] as Node).key}`,
    ...[...arrows].map(([arrow, events]) => `${arrow}: ${[...events].join(', ')}`),
    'state "from anywhere" as anywhere',
    ...waysOf(turnMachine.root)
      .filter(({ to }) => to !== null)
      .map((way) => `anywhere --> ${(way.to as Node).key}: ${reason(way)}`),
  ];
}

/** The diagram of one state, with its children and the targets of its transitions to other states. */
function detail(top: Node, children: readonly Node[]): string[] {
  const ways = [top, ...children].flatMap(waysOf).filter((way) => way.to !== null && way.from !== way.to);
  const outside = new Set(ways.flatMap(({ to }) => (to && topOf(to) !== top ? [to] : [])));
  const first = top.initial.target[0] as Node;
  return [
    `state ${top.key} {`,
    `  [*] --> ${idOf(first)}`,
    ...children.map((child) => `  state "${child.key}" as ${idOf(child)}`),
    ...ways.filter(({ to }) => to && topOf(to) === top).map((way) => `  ${arrow(way)}`),
    '}',
    ...[...outside].map((node) => `state "${nameOf(node)}" as ${idOf(node)}`),
    ...ways.filter(({ to }) => to && topOf(to) !== top).map(arrow),
  ];
}

function arrow(way: Way): string {
  return `${idOf(way.from)} --> ${idOf(way.to as Node)}: ${reason(way)}`;
}

function reason({ on, guard }: Way): string {
  return `${on || 'at once'}${guard === null ? '' : ` [${guard}]`}`;
}

function topOf(node: Node): Node {
  return node.parent && node.parent !== turnMachine.root ? topOf(node.parent as Node) : node;
}

function nameOf(node: Node): string {
  return node.path.join('.');
}

function idOf(node: Node): string {
  return node.path.join('__');
}
