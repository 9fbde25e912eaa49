/** `cox approval list`. */
import { connectNats } from '@coxswain/adapter-nats';
import { DECISION_MAX_CHARS, printable, summarizeArgs, type WirePendingApproval } from '@coxswain/client';
import { cutGraphemes, tenantSubjects } from '@coxswain/protocol';
import { listPendingApprovals, type OpenBus, reachedAt, withBus } from '../../instance/mod.ts';
import { type CommandRun, EXIT, type Invocation, usageError } from '../../line/mod.ts';
import { ApprovalChanges } from '../../run/mod.ts';
import { stopSignal, untilAborted } from '../../service/mod.ts';
import { ago, standardStreams, table } from '../../terminal/mod.ts';

const SHOWN_MAX = 200;
/** Events within this time, in ms, cause one refresh. */
const DEBOUNCE_MS = 200;
/** Events are delivered at most once, so the list is also refreshed at this interval, in ms. */
const REFRESH_MS = 30_000;

/**
 * Lists the pending approvals of all sessions. With `--follow`, then prints new and settled ones until it is stopped.
 */
export const run: CommandRun = (invocation) => {
  const isJson = invocation.flags.on('json');
  const changes = new ApprovalChanges(
    (approvals) => print(invocation, approvals),
    ({ session_id, call_id }) =>
      standardStreams.out(
        isJson
          ? `${JSON.stringify({ type: 'approval_settled', session_id, call_id })}\n`
          : `${session_id}  ${printable(call_id)}  no longer pending\n`,
      ),
  );
  return withBus(invocation, false, async (bus) => {
    if (invocation.flags.on('follow')) return watch(bus, changes, isJson);
    const all = await listPendingApprovals(bus);
    const rest = behind(all, invocation.flags.text('after'));
    const shown = rest.slice(0, invocation.flags.whole('limit', { min: 1, max: 100_000 }) ?? SHOWN_MAX);
    print(invocation, shown);
    const last = shown.at(-1);
    if (shown.length < rest.length && last)
      standardStreams.err(
        `${rest.length - shown.length} more: --after ${last.session_id}/${printable(last.call_id)}\n`,
      );
    if (all.length === 0 && !isJson) standardStreams.err('no approval is pending\n');
    return EXIT.ok;
  });
};

function behind(all: readonly WirePendingApproval[], after: string | undefined): readonly WirePendingApproval[] {
  if (after === undefined) return all;
  const at = all.findIndex(({ session_id, call_id }) => `${session_id}/${call_id}` === after);
  if (at < 0)
    throw usageError(`--after ${cutGraphemes(after, 160)}: that approval is no longer pending; start without --after`);
  return all.slice(at + 1);
}

function print({ flags }: Invocation, approvals: readonly WirePendingApproval[]): void {
  if (flags.on('json')) for (const approval of approvals) standardStreams.out(`${JSON.stringify(approval)}\n`);
  else if (approvals.length > 0) standardStreams.out(table(approvals.map(rowOf)));
}

function rowOf({
  session_id,
  persona,
  call_id,
  tool,
  args,
  since,
  expires_at,
  question,
}: WirePendingApproval): string[] {
  const notes = [
    question === undefined ? '' : 'outcome unknown after a crash',
    expires_at === undefined ? '' : `expires ${expires_at}`,
  ];
  const about = [summarizeArgs(args, DECISION_MAX_CHARS), ...notes].filter(Boolean).join('; ');
  return [session_id, printable(persona ?? ''), call_id, tool, ago(since), about];
}

async function watch(bus: OpenBus, changes: ApprovalChanges, isJson: boolean): Promise<typeof EXIT.ok> {
  const nc = await connectNats({ ...reachedAt(bus), name: 'cox' });
  const stop = stopSignal();
  let soon: NodeJS.Timeout | undefined;
  let failed: (error: unknown) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    failed = reject;
  });
  const look = () => changes.look(() => listPendingApprovals(bus));
  const lookSoon = () => {
    soon ??= setTimeout(() => {
      soon = undefined;
      look().catch(failed);
    }, DEBOUNCE_MS);
  };
  // Subscribes before the first read, so that no event is missed between the two.
  const subscription = nc.subscribe(tenantSubjects.events(bus.client.tenant), {
    callback: (error, message) => {
      if (error) failed(error);
      else if (APPROVAL.test(message.string())) lookSoon();
    },
  });
  const again = setInterval(lookSoon, REFRESH_MS);
  try {
    await Promise.race([look(), broken]);
    if (!isJson) standardStreams.err('watching; stop with Ctrl-C\n');
    await Promise.race([stop.promise, broken, untilAborted(bus.gone)]);
    if (!stop.signal.aborted) bus.gone.throwIfAborted();
    return EXIT.ok;
  } finally {
    clearInterval(again);
    clearTimeout(soon);
    subscription.unsubscribe();
    stop.release();
    await nc.close();
  }
}

const APPROVAL = /"type":"approval_(requested|decided)"/;
