/** Approvals and denials from the command line. */
import type { Session } from '@coxswain/client';
import type { JsonObject } from '@coxswain/protocol';
import { approvalsBelow, type OpenBus, sessionStatus } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { acceptedAtMost, sendToSession } from './send-to-session.ts';

/**
 * Decides the named call, or the only pending one: of the session, or else of a descendant.
 * @throws CliError `not_pending` if no call waits; exit code 2 if several match.
 */
export function decide(invocation: Invocation, decision: 'allow' | 'deny'): Promise<ExitCode> {
  const { flags, args } = invocation;
  const edited = editedArgs(flags.text('args'));
  const reason = flags.text('reason');
  const remember = flags.oneOf('remember', ['session', 'persona']);
  return sendToSession(invocation, async (session, options, bus) => {
    const { owner, calls } = await findPendingCalls(bus, session, args[1]);
    const callId = chooseCall(args[1], calls);
    const how = { ...acceptedAtMost(options), reason, remember };
    const sent = await (decision === 'allow'
      ? owner.approve(callId, { ...how, args: edited })
      : owner.deny(callId, how));
    return { ...sent, to: owner };
  });
}

interface PendingCalls {
  readonly owner: Session;
  readonly calls: readonly { readonly call_id: string; readonly tool: string }[];
}

/** The session itself if one of its calls waits; otherwise the only descendant with a matching call. */
async function findPendingCalls(bus: OpenBus, session: Session, given: string | undefined): Promise<PendingCalls> {
  const own = await callsOf(bus, session);
  if (own.calls.length > 0) return own;
  const below = (await approvalsBelow(bus, session.id)).filter(({ call_id }) => call_id.startsWith(given ?? ''));
  const [only, ...others] = new Set(below.map(({ session_id }) => session_id));
  if (others.length > 0) {
    const listed = below.map(({ session_id, call_id, tool }) => `${session_id} ${call_id} (${tool})`);
    throw usageError(`several sessions below ${session.id} match: ${listed.join(', ')}; name one of them`);
  }
  return only === undefined ? own : { owner: bus.client.session(only), calls: below };
}

async function callsOf(bus: OpenBus, session: Session): Promise<PendingCalls> {
  const { approvals } = await sessionStatus(bus, session);
  return { owner: session, calls: approvals.map(({ call_id, tool }) => ({ call_id, tool })) };
}

/**
 * The call whose id starts with the given text, or the only one. An unknown id is returned unchanged, so that the
 * session reports what it knows about it.
 * @param none the error code if there is no call.
 * @throws CliError with that code; exit code 2 for an empty id or several matches.
 */
export function chooseCall(
  given: string | undefined,
  calls: readonly { readonly call_id: string; readonly tool: string }[],
  none: 'not_pending' | 'not_found' = 'not_pending',
): string {
  const listed = () => calls.map(({ call_id, tool }) => `${call_id} (${tool})`).join(', ');
  if (given === '') throw usageError('the id of the call is empty; omit it if only one call matches');
  if (given !== undefined) {
    if (calls.some(({ call_id }) => call_id === given)) return given;
    const matching = calls.filter(({ call_id }) => call_id.startsWith(given));
    if (matching.length > 1) throw usageError(`"${given}" matches ${listed()}; give more of the id`);
    return matching[0]?.call_id ?? given;
  }
  const [only] = calls;
  if (!only)
    throw new CliError(
      EXIT.error,
      none,
      none === 'not_pending'
        ? 'not_pending: no call of this session or below it waits for an approval; cox approval list lists waiting calls'
        : 'not_found: no call of this session is open; cox session show lists the open calls',
    );
  if (calls.length > 1) throw usageError(`${calls.length} calls match: ${listed()}; name one`);
  return only.call_id;
}

function editedArgs(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError(`--args is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usageError('--args takes a JSON object');
  return value as JsonObject;
}
