/** `cox session show`. */
import {
  DECISION_MAX_CHARS,
  describeState,
  printable,
  summarizeArgs,
  tokenUsage,
  visibleLine,
  type WirePendingApproval,
} from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import {
  approvalsBelow,
  approveCommand,
  findSession,
  pastedCommand,
  sessionStatus,
  withBus,
} from '../../instance/mod.ts';
import { type CommandRun, EXIT } from '../../line/mod.ts';
import { ago, budgetLine, personaWaitText, spent, standardStreams, table, waitsFor } from '../../terminal/mod.ts';

const BODY_SHOWN_CHARS = 120;

/** Shows the state of a session now, or after the record of `--at`. */
export const run: CommandRun = (invocation) => {
  const at = invocation.flags.whole('at', { min: 1, max: Number.MAX_SAFE_INTEGER });
  return withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const status = await sessionStatus(bus, session, at);
    // The session's own status does not show the approvals that its children wait for.
    const below = at === undefined && status.children.length > 0 ? await approvalsBelow(bus, session.id) : [];
    if (invocation.flags.on('json')) standardStreams.out(`${JSON.stringify({ ...status, child_approvals: below })}\n`);
    else standardStreams.out(formatText(status, below, (line) => pastedCommand(line, bus, invocation.env)));
    return EXIT.ok;
  });
};

function contextLine({ tokens, window, window_from, messages, compactions }: SessionStatus['context']): string {
  const count = (value: number) => value.toLocaleString('en-US');
  const of = window === null ? '' : ` of ${count(window)}`;
  const learned = window_from === 'overflow' ? '; the provider rejected a prompt of this size as too long' : '';
  const passes = compactions === 0 ? '' : `, compacted ${compactions === 1 ? 'once' : `${compactions} times`}`;
  return `~${count(tokens)}${of} tokens in ${count(messages)} message${messages === 1 ? '' : 's'}${passes}${learned}`;
}

function personaLine({ persona, persona_version: version }: SessionStatus): string {
  return persona === null ? 'none yet' : `${persona}${version === null ? '' : `, version ${printable(version)}`}`;
}

function formatText(
  status: SessionStatus,
  below: readonly WirePendingApproval[],
  pasted: (command: string) => string,
): string {
  const child = typeof status.state === 'string' ? '' : Object.values(status.state)[0];
  const rows: string[][] = [
    ['session', status.session_id],
    ['state', `${describeState(status.state, status.stop_reason)}${child ? ` / ${child}` : ''}`],
    ['run', `${status.run}, turn ${status.turn}`],
    ...(status.parent
      ? [
          [
            'child of',
            `${status.parent.session}, call ${status.parent.call_id}, ${status.parent.depth} below ${status.parent.root}`,
          ],
        ]
      : []),
    ['persona', personaLine(status)],
    ['model', status.model ?? 'none yet'],
    ['used', `${spent(tokenUsage(status.usage), status.cost_usd)}${status.run === 1 ? '' : ', in all runs'}`],
    ...status.budgets.map((state) => ['budget', budgetLine(state)]),
    ['context', contextLine(status.context)],
    ['record', `${status.n}, ${ago(status.at)}, epoch ${status.epoch}`],
  ];
  if (status.suspended) {
    const { since, reason, by_itself } = status.suspended;
    const how = `${by_itself ? 'automatically' : 'by command'}, ${ago(since)}${reason === null ? '' : ` (${printable(reason)})`}`;
    rows.push(['suspended', `${how}${waitsFor(status.suspended) || ', until it is resumed'}`]);
  }
  const { waiting_for_persona: persona } = status;
  if (persona) rows.push(['waits', `${personaWaitText(persona)} (since ${ago(persona.since)})`]);
  if (status.wakes_at !== null && !status.suspended) rows.push(['wakes', status.wakes_at]);
  if (status.error) {
    const at = status.failed_at === null ? '' : ` (at record ${status.failed_at})`;
    rows.push(['error', `${status.error.code}: ${printable(status.error.message)}${at}`]);
  }
  for (const { call_id, tool, status: state } of status.calls) rows.push(['call', `${call_id} ${tool} ${state}`]);
  for (const { session, persona, call_id } of status.children)
    rows.push(['child', `${session} ${persona} for ${call_id}`]);
  for (const { call_id, tool, args } of status.approvals) {
    rows.push(['approval', `${call_id} ${tool} ${summarizeArgs(args, DECISION_MAX_CHARS)}`]);
  }
  for (const { kind, mode, body, command_id } of status.pending) {
    rows.push(['pending', `${kind}${mode ? ` (${mode})` : ''} ${visibleLine(body, BODY_SHOWN_CHARS)} [${command_id}]`]);
  }
  for (const { session_id, persona, call_id, tool, args } of below) {
    const asking = persona === null ? session_id : `${session_id} (${printable(persona)})`;
    rows.push(['child approval', `${asking}: ${call_id} ${tool} ${summarizeArgs(args, DECISION_MAX_CHARS)}`]);
  }
  const how = below.map(({ session_id, call_id }) => `  ${pasted(approveCommand(session_id, call_id))}\n`);
  return `${table(rows)}${how.length === 0 ? '' : `Approve (or use deny):\n${how.join('')}`}`;
}
