/** `cox session tree`. */
import {
  describeState,
  nodesOf,
  readTree,
  tokenUsage,
  type WireSessionTree,
  type WireTreeNode,
} from '@coxswain/client';
import { findSession, type OpenBus, withBus } from '../../instance/mod.ts';
import { type CommandRun, EXIT } from '../../line/mod.ts';
import { stopSignal } from '../../service/mod.ts';
import { spent, standardStreams, table, tokens } from '../../terminal/mod.ts';

const POLL_MS = 1_000;

/** Shows a session and its descendants as one tree. */
export const run: CommandRun = (invocation) => {
  let shown = '';
  return withBus(invocation, false, async (bus) => {
    const { flags, args } = invocation;
    const session = await findSession(bus.client, args[0] as string);
    const isJson = flags.on('json');
    const show = async () => {
      const tree = await treeOf(bus, session.id);
      return isJson ? `${JSON.stringify(tree)}\n` : treeText(tree);
    };
    if (!flags.on('follow')) {
      standardStreams.out(await show());
      return EXIT.ok;
    }
    const stop = stopSignal();
    try {
      while (!stop.signal.aborted && !bus.gone.aborted) {
        const now = await show();
        if (now !== shown) standardStreams.out(isJson || shown === '' ? now : `\n${now}`);
        shown = now;
        await Promise.race([stop.promise, new Promise((wake) => setTimeout(wake, POLL_MS))]);
      }
      if (!stop.signal.aborted) bus.gone.throwIfAborted();
      return EXIT.ok;
    } finally {
      stop.release();
    }
  });
};

function treeOf(bus: OpenBus, sessionId: string): Promise<WireSessionTree> {
  return readTree((id) => bus.client.session(id).journal(), sessionId);
}

/** Formats a tree as text: one line for each session, and a last line with the totals. */
export function treeText({ parent, top, left_out }: WireSessionTree): string {
  const above = parent
    ? `below ${parent.session}${parent.root === parent.session ? '' : `, at the top ${parent.root}`}\n`
    : '';
  const rows = rowsOf(top, '', '');
  const left = left_out > 0 ? `… and ${left_out} more sessions\n` : '';
  const all = nodesOf(top);
  const input = all.reduce((sum, { usage }) => sum + usage.input_tokens, 0);
  const output = all.reduce((sum, { usage }) => sum + usage.output_tokens, 0);
  const costs = all.map(({ cost_usd }) => cost_usd);
  const cost = costs.some((one) => one === null) ? null : costs.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const total = `${tokens(all.length)} session${all.length === 1 ? '' : 's'}, ${spent({ inputTokens: input, outputTokens: output }, cost)}\n`;
  return `${above}${table(rows)}${left}${total}`;
}

function rowsOf(node: WireTreeNode, lead: string, below: string): string[][] {
  const { session_id, persona, restart, usage, cost_usd } = node;
  const name = `${persona ?? 'no persona yet'}${restart > 0 ? ` (restart ${restart})` : ''}`;
  const own = [`${lead}${session_id}`, name, doing(node), spent(tokenUsage(usage), cost_usd)];
  const last = node.children.length - 1;
  return [
    own,
    ...node.children.flatMap((child, at) =>
      rowsOf(child, `${below}${at === last ? '└ ' : '├ '}`, `${below}${at === last ? '  ' : '│ '}`),
    ),
  ];
}

function doing({ state, stop_reason, approvals, problem }: WireTreeNode): string {
  if (problem !== null) return problem;
  if (state === null) return 'not started';
  return `${describeState(state, stop_reason)}${approvals > 0 ? `, ${approvals} to approve` : ''}`;
}
