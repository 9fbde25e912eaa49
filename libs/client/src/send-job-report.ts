/**
 * Reports the progress of a job that a hook of a session started: a command for workers. NATS permissions limit its
 * subject to them.
 */
import { JobReceipt, type JobSettings, parseFeedback, pathText, type SessionRef, toWire } from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import type { SendOptions, WireSentCommand } from './outgoing-command.ts';
import { type CommandBus, sendPayload } from './send-command.ts';

/**
 * The newest receipt of a job and its message to the model. Without a message, the host describes the end of the job.
 */
export interface JobReport {
  /** The job. Its status is an end state, or `running`. */
  readonly job: JobSettings;
  readonly body?: string | undefined;
}

/**
 * Sends a report. If the session does not know the job, it decides when the pending hooks have answered, because one of
 * them may have started it. It rejects the report with `job_unknown` if none did.
 * @throws as `sendCommand`, and InvalidOptionError for an unknown member of the job.
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
  // Other types are rejected by the schema.
  if (typeof job !== 'object' || job === null) return job;
  const form = toWire(JobReceipt, { ...job, status: job.status ?? 'queued' } as never);
  if (form.ok) return form.value;
  const option = pathText(['job', ...form.path]);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}
