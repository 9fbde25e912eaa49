/** Carries out a typed line on the session. */
import type { Session } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { assertNever } from '@coxswain/protocol';
import { chooseWaiting, readReplacement } from '../line/mod.ts';
import { pendingText } from '../terminal/mod.ts';
import type { TypedCommand } from './typed-command.ts';

/** The calls that a line without a call id refers to. */
export interface MeantCalls {
  /** The call that waits for a decision, in this session or in a descendant. */
  readonly asked: Pick<OpenApproval, 'session' | 'callId'> | undefined;
  /** The newest running call. */
  readonly running: string | null;
  /** Whether a line to a session that has ended starts its next run. Otherwise it is queued for the next run. */
  readonly startsRuns?: boolean;
}

/**
 * Sends the command of a line, or shows its result.
 * @throws the errors of sending; CliError or Error if the line refers to nothing.
 */
export async function carryOut(
  session: Session,
  command: TypedCommand,
  { asked, running, startsRuns = false }: MeantCalls,
  show: (text: string) => void,
): Promise<void> {
  switch (command.do) {
    case 'steer':
      await (startsRuns ? session.say(command.text) : session.steer(command.text));
      return;
    case 'interrupt':
      await session.steer(command.text, { mode: 'interrupt_immediate', preempt: command.preempt });
      return;
    case 'followup':
      await session.followup(command.text);
      return;
    case 'remind':
      await session.remind(command.text);
      return;
    case 'decide': {
      if (asked === undefined) return;
      const { decision, reason, remember, args } = command;
      if (decision === 'allow') await asked.session.approve(asked.callId, { reason, remember, args });
      else await asked.session.deny(asked.callId, { reason, remember });
      return;
    }
    case 'cancel':
      await session.cancel(command.reason);
      return;
    case 'cancel_call': {
      const callId = command.callId ?? running;
      if (callId === null) throw new Error('no call is running');
      await session.cancelCall(callId);
      return;
    }
    case 'suspend':
      await session.suspend({
        ...(command.forMs === undefined ? {} : { forMs: command.forMs }),
        ...(command.signal === undefined ? {} : { signal: command.signal }),
      });
      return;
    case 'resume':
      await session.resume();
      return;
    case 'signal':
      await session.signal(command.name, command.data);
      return;
    case 'messages':
      show(pendingText(await session.wire.state()));
      return;
    case 'withdraw':
      await session.revoke(chooseWaiting(command.commandId, await queuedIds(session)));
      return;
    case 'edit': {
      const { commandId, text } = readReplacement(command.text, await queuedIds(session));
      await session.replace(commandId, text);
      return;
    }
    case 'detach':
    case 'edit_args':
    case 'help':
    case 'nothing':
      return;
    default:
      assertNever(command);
  }
}

async function queuedIds(session: Session): Promise<string[]> {
  return (await session.pending()).map(({ commandId }) => commandId);
}
