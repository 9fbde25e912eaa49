/**
 * Jobs: work that hooks have begun and that goes on when they have answered. The session remembers those whose end was
 * not reported; whoever runs one reports it as the internal command `feedback`, and the model is told.
 */
import {
  BOUNDS,
  type CommandInput,
  cutText,
  type HookAnswer,
  isOpenJob,
  type JobReceipt,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from './context.ts';
import { type Decision, events } from './decision.ts';
import { feedbackEvent } from './feedback.ts';
import { reject } from './rejection.ts';

/** A job of which no end was reported. */
export interface OpenJob {
  readonly job_id: string;
  readonly hook: string;
  readonly dedupe_key?: string | undefined;
}

const isOf = ({ job_id, dedupe_key }: JobReceipt) => {
  return (job: OpenJob): boolean =>
    job.job_id === job_id || (dedupe_key !== undefined && job.dedupe_key === dedupe_key);
};

/** What is said of receipts for which there is no room: their jobs are on the tape, and nobody waits for their end. */
export function untrackedJobs(context: SessionContext, answers: readonly HookAnswer[]): SessionEvent[] {
  let room = BOUNDS.jobsOpenMax - context.jobs.length;
  return answers.flatMap(({ hook, verdict }): SessionEvent[] => {
    if (verdict?.kind !== 'job' || !isOpenJob(verdict.receipt)) return [];
    if (context.jobs.some(isOf(verdict.receipt)) || room-- > 0) return [];
    return [{ type: 'job_untracked', hook, job_id: verdict.receipt.job_id, code: 'too_many_jobs' }];
  });
}

/** The open jobs after a receipt for one of them, or for another. */
export function jobsAfter(jobs: readonly OpenJob[], hook: string, receipt: JobReceipt): readonly OpenJob[] {
  const known = jobs.some(isOf(receipt));
  if (!isOpenJob(receipt)) return known ? jobs.filter((job) => !isOf(receipt)(job)) : jobs;
  if (known || jobs.length >= BOUNDS.jobsOpenMax) return jobs;
  const { job_id, dedupe_key } = receipt;
  return [...jobs, { job_id, hook, ...(dedupe_key === undefined ? {} : { dedupe_key }) }];
}

/** Decides the command `feedback`: how far a job is that is open, and what the model is to be told of it. */
export function decideFeedbackCommand(context: SessionContext, input: CommandInput): Decision {
  const { command_id } = input;
  const job = input.body.job as unknown as JobReceipt;
  const open = context.jobs.find(isOf(job));
  if (!open) {
    const message = `no hook of the session has begun a job ${job.job_id} that is open`;
    // Only a hook that is being asked may still begin it: without one, to report it again changes nothing.
    const detail = context.consult === null ? {} : { detail: { hooks_asked: true } };
    return reject(input, 'job_unknown', message, { field: 'job.job_id', ...detail });
  }
  const source = `hook:${open.hook}`;
  const reported: SessionEvent = { type: 'job_reported', command_id, source, receipt: job };
  const text = (input.body.body as string | undefined) ?? outcomeText(job);
  return text === undefined
    ? events(reported)
    : events(reported, feedbackEvent(context, { source, body: text }, command_id));
}

/** What a model is told of a job whose report says nothing itself; nothing while it goes on. */
function outcomeText(job: JobReceipt): string | undefined {
  if (isOpenJob(job)) return undefined;
  const { job_id, status, affected_paths = [], error, retry_hint } = job;
  const told = [`Job ${job_id} has ${status === 'skipped' ? 'been skipped' : status}.`];
  if (error) told.push(`It says: ${error.message}`);
  if (affected_paths.length > 0) told.push(`Files: ${affected_paths.join(', ')}.`);
  if (retry_hint?.retryable) told.push('It may be tried again.');
  return cutText(told.join(' '), BOUNDS.feedbackBodyMaxBytes / 6);
}
