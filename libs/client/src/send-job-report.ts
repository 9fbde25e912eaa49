/**
 * How far a job is that a hook of a session has begun: a command for whoever runs it, whose subject the broker keeps for
 * workers.
 */
import { JobReceipt, type JobSettings, parseFeedback, pathText, type SessionRef, toWire } from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import type { SendOptions, WireSentCommand } from './outgoing-command.ts';
import { type CommandBus, sendPayload } from './send-command.ts';

/**
 * The newest receipt of a job and its message to the model. Without a message, the host describes the end of the job.
 */
export interface JobReport {
  /** Its status here is its end, or `running`. */
  readonly job: JobSettings;
  readonly body?: string | undefined;
}

/**
 * Sends it. Throws as sendCommand does, and InvalidOptionError for a member that a job does not have. A report of a job that the session does not know is decided when the hooks that are
 * asked have answered, as one of them may have started it: `job_unknown` where none has.
 * @internal
 */
export async function sendJobReport(
  bus: CommandBus,
  ref: SessionRef,
  report: JobReport,
  options: SendOptions = {},
): Promise<WireSentCommand> {
  const body = {
    ...report,
    job: receiptOf(report.job),
    ...(options.actor === undefined ? {} : { actor: options.actor }),
  };
  const payload = new TextEncoder().encode(JSON.stringify(body));
  const parsed = parseFeedback(payload);
  if (!parsed.ok) {
    throw new CommandRejectedError(parsed.problem.code, parsed.problem.message, { field: parsed.problem.field });
  }
  return sendPayload(bus, ref, 'feedback', payload, options);
}

function receiptOf(job: JobSettings): unknown {
  // Anything else than an object is for the schema to refuse.
  if (typeof job !== 'object' || job === null) return job;
  const form = toWire(JobReceipt, { ...job, status: job.status ?? 'queued' } as never);
  if (form.ok) return form.value;
  const option = pathText(['job', ...form.path]);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}
