/**
 * Jobs: work that hooks started and that continues after their answer. The session remembers the newest jobs without a
 * reported end, up to a bound: the process of an old one may have died without a report. The process that runs a job
 * reports its progress and its end with the internal command `feedback`. The model gets the text of a report; for an end
 * without a text, a default text.
 */
import {
  BOUNDS,
  cutText,
  type EventOf,
  type HookAnswer,
  isOpenJob,
  type JobReceipt,
  type SessionEvent,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, reject, rejected } from '../../core/decision.ts';
import { feedbackEvent } from '../injections/feedback.ts';
import type { DeferredReport, OpenConsult, OpenJob } from './state.ts';

const isOf = ({ job_id, dedupe_key }: JobReceipt) => {
  return (job: OpenJob): boolean =>
    job.job_id === job_id || (dedupe_key !== undefined && job.dedupe_key === dedupe_key);
};

/** The `job_untracked` events for jobs that the session forgets, because newer ones exceed the bound. */
export function untrackedJobs(context: SessionContext, answers: readonly HookAnswer[]): SessionEvent[] {
  let { jobs } = context;
  return answers.flatMap(({ hook, verdict }): SessionEvent[] => {
    if (verdict?.kind !== 'job') return [];
    const before = jobs;
    jobs = jobsAfter(jobs, hook, verdict.receipt);
    if (!isOpenJob(verdict.receipt)) return [];
    const forgotten = before.filter((job) => !jobs.includes(job));
    return forgotten.map(({ hook, job_id }) => ({ type: 'job_untracked', hook, job_id, code: 'too_many_jobs' }));
  });
}

/** The open jobs after a receipt: a new one is added, in place of the oldest one at the bound; an ended one is removed. */
export function jobsAfter(jobs: readonly OpenJob[], hook: string, receipt: JobReceipt): readonly OpenJob[] {
  const known = jobs.some(isOf(receipt));
  if (!isOpenJob(receipt)) return known ? jobs.filter((job) => !isOf(receipt)(job)) : jobs;
  if (known) return jobs;
  const { job_id, dedupe_key } = receipt;
  const kept = jobs.length < BOUNDS.jobsOpenMax ? jobs : jobs.slice(1);
  return [...kept, { job_id, hook, ...(dedupe_key === undefined ? {} : { dedupe_key }) }];
}

/**
 * Decides the command `feedback`: a report of the progress or the end of an open job, with its message to the model. A
 * report can arrive before the record of the job's receipt. So a report of an unknown job is deferred to the end of the
 * open consult. Without an open consult, or with too many deferred reports, it is rejected.
 */
export function decideFeedbackCommand(context: SessionContext, input: Command<'feedback'>): Decision {
  const { command_id } = input;
  const { job, body } = input.body;
  const report = { command_id, receipt: job, ...(body === undefined ? {} : { body }) };
  const open = context.jobs.find(isOf(job));
  if (open) return events(...reported(context, open, report, 0));
  const { consult } = context;
  if (consult === null) return reject(input, 'job_unknown', unknownText(job), { field: JOB_ID });
  const deferred = consult.reports ?? [];
  if (deferred.some((one) => one.command_id === command_id))
    return { kind: 'ignored', reason: 'the report is already deferred' };
  if (deferred.length >= BOUNDS.jobsOpenMax) return reject(input, 'job_unknown', unknownText(job), { field: JOB_ID });
  return events({ type: 'job_report_deferred', ...report });
}

/** The open consult with one more deferred report; null without an open consult. */
export function withDeferredReport(
  consult: OpenConsult | null,
  { command_id, receipt, body }: EventOf<'job_report_deferred'>,
): OpenConsult | null {
  const report = { command_id, receipt, ...(body === undefined ? {} : { body }) };
  return consult && { ...consult, reports: [...(consult.reports ?? []), report] };
}

/** The events of the reports deferred to the end of a consult. A report of a job that is still unknown is rejected. */
export function deferredReports(
  context: SessionContext,
  { reports = [] }: OpenConsult,
  answers: readonly HookAnswer[],
): SessionEvent[] {
  let jobs = context.jobs;
  for (const { hook, verdict } of answers) if (verdict?.kind === 'job') jobs = jobsAfter(jobs, hook, verdict.receipt);
  let pieces = 0;
  return reports.flatMap((report): SessionEvent[] => {
    const { command_id, receipt } = report;
    const open = jobs.find(isOf(receipt));
    if (!open)
      return [rejected({ command_id, verb: 'feedback' }, 'job_unknown', unknownText(receipt), { field: JOB_ID })];
    jobs = jobsAfter(jobs, open.hook, receipt);
    const list = reported(context, open, report, pieces);
    pieces += list.length - 1;
    return list;
  });
}

const JOB_ID = 'job.job_id';

const unknownText = ({ job_id }: JobReceipt) => `no hook of the session has an open job ${job_id}`;

/** @param before the number of feedback pieces in the same record so far. */
function reported(
  context: SessionContext,
  { hook }: OpenJob,
  { command_id, receipt, body = outcomeText(receipt) }: DeferredReport,
  before: number,
): SessionEvent[] {
  const source = `hook:${hook}`;
  const feedback =
    body === undefined ? [] : [feedbackEvent(context, { source, body }, { commandId: command_id, before })];
  return [{ type: 'job_reported', command_id, source, receipt }, ...feedback];
}

/** The default message about the end of a job; none while it continues. */
function outcomeText(job: JobReceipt): string | undefined {
  if (isOpenJob(job)) return undefined;
  const { job_id, status, affected_paths = [], error, retry_hint } = job;
  const sentences = [`Job ${job_id} has ${status === 'skipped' ? 'been skipped' : status}.`];
  if (error) sentences.push(`Error: ${error.message}`);
  if (affected_paths.length > 0) sentences.push(`Files: ${affected_paths.join(', ')}.`);
  if (retry_hint?.retryable) sentences.push('A retry is possible.');
  // The bound is in bytes of JSON, and a UTF-16 unit needs at most six (`\u0000`).
  return cutText(sentences.join(' '), BOUNDS.feedbackBodyMaxBytes / 6);
}
