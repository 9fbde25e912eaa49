/** The reference of seams, from the catalogue, with the machine's states at each seam. */
import { Mode, SEAM_KINDS, SEAMS, type SeamKind } from '@coxswain/protocol';
import { emptyState, next, restoreState, turnMachine } from '@coxswain/turn';
import { code, generatedFrom, table } from './markdown.ts';

/** The text of docs/reference/seams.md. */
export function seamReference(): string {
  const states = seamStates();
  return [
    generatedFrom('libs/protocol/src/catalogues/seams.ts', 'libs/turn/src/machine/chart.ts'),
    '# Seams\n',
    'A **seam** is an injection point: a fixed place in the loop where queued messages are delivered. The table lists all seams in the',
    'order of a turn. A turn without calls passes `iteration_end`. A turn with calls passes `post_tool_dispatch`, unless an interrupt',
    'skips all its calls. At each seam that it passes, the session records one `loop_checkpoint` event, also if nothing is delivered.',
    'The column “Feedback” marks the seams at which the model gets [feedback](../guides/tools.md#feedback-text-outside-a-result).',
    '[Steering and seams](../concepts/steering-and-seams.md) explains the concept.\n',
    table(
      ['Seam', 'Where', 'Delivers', 'Feedback', 'State'],
      SEAM_KINDS.map((kind) => [
        code(kind),
        SEAMS[kind].where,
        SEAMS[kind].drains.map(code).join(', ') || 'nothing',
        SEAMS[kind].feedback ? 'yes' : '',
        (states.get(kind) ?? []).map(code).join('<br>'),
      ]),
    ),
    '',
    '## Modes\n',
    table(
      ['Mode', 'Delivered at'],
      Mode.options.map((mode) => [
        code(mode),
        SEAM_KINDS.filter((kind) => SEAMS[kind].drains.includes(mode))
          .map(code)
          .join(', '),
      ]),
    ),
    '',
    'The default is `finish_step`. Two modes have a short name: `steer` for `finish_step`, and `interrupt` for `interrupt_immediate`. An',
    'unknown mode is rejected.\n',
    'An interrupt with `preempt` first ends the streaming answer and the running calls. It is therefore the quickest message: [choose the',
    'mode](../guides/steering.md#choose-the-mode). A follow-up is delivered in the state `steering_check`, when a run would otherwise',
    'end.\n',
  ].join('\n');
}

/**
 * The states of each seam, from the machine itself: in such a state, the machine's next event is the seam's checkpoint.
 */
function seamStates(): ReadonlyMap<SeamKind, readonly string[]> {
  const states = new Map<SeamKind, string[]>();
  const { context } = emptyState('reference');
  for (const top of Object.values(turnMachine.states)) {
    for (const child of Object.values(top.states)) {
      if (!(child.tags as readonly string[]).includes('seam')) continue;
      const event = next(restoreState({ value: { [top.key]: child.key }, context }));
      if (event?.type !== 'loop_checkpoint')
        throw new Error(`${top.key}.${child.key} is tagged a seam and passes none`);
      states.set(event.kind, [...(states.get(event.kind) ?? []), `${top.key}.${child.key}`]);
    }
  }
  return states;
}
