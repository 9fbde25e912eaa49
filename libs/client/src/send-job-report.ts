/**
 * How far a job is that a hook of a session has begun: a command for whoever runs it, whose subject the broker keeps for
 * workers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type JobReceiptInput, parseFeedback, type SessionRef } from '@coxswain/protocol';
import { CommandRejectedError } from './client-errors.ts';
import type { SendOptions, SentCommand } from './outgoing-command.ts';
import { type CommandBus, sendPayload } from './send-command.ts';

/** A job's newest receipt, and what the model is told of it; the end of a job is told in the host's words otherwise. */
export interface JobReport {
  readonly job: JobReceiptInput;
  readonly body?: string | undefined;
}

// A job may be quicker than the record of its receipt, for which the other hooks of the point are waited for.
const RETRY_FIRST_MS = 50;
const RETRIES_MAX = 7;

/**
 * Sends it. Where it waits to be accepted and names no id, it is sent again for some seconds while hooks are being asked,
 * whose answers may begin the job. Throws as sendCommand does; `job_unknown` where there is no such job.
 */
export async function sendJobReport(
  bus: CommandBus,
  ref: SessionRef,
  report: JobReport,
  options: SendOptions = {},
): Promise<SentCommand> {
  const body = { ...report, ...(options.actor === undefined ? {} : { actor: options.actor }) };
  const payload = new TextEncoder().encode(JSON.stringify(body));
  const parsed = parseFeedback(payload);
  if (!parsed.ok) {
    throw new CommandRejectedError(parsed.problem.code, parsed.problem.message, { field: parsed.problem.field });
  }
  // An id that was refused stays refused.
  const retries = options.id === undefined ? RETRIES_MAX : 0;
  for (let retry = 0; ; retry++) {
    try {
      return await sendPayload(bus, ref, 'feedback', payload, options);
    } catch (error) {
      const isEarly =
        error instanceof CommandRejectedError && error.code === 'job_unknown' && error.detail?.hooks_asked === true;
      if (!isEarly || retry >= retries) throw error;
      await sleep(RETRY_FIRST_MS * 2 ** retry, undefined, options.signal ? { signal: options.signal } : {});
    }
  }
}
