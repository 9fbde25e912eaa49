/**
 * Job receipts: the return value of a hook for work that continues after its answer, and the reports on this work.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { JsonObject } from '../wire/json.ts';
import { HOOK_POINTS, hookPointOf, pascalNameOfPoint } from './hook-points.ts';

/** The status of a job. The last three are final. */
export const JobStatus = z.enum(['queued', 'running', 'succeeded', 'failed', 'skipped']);
export type JobStatus = z.infer<typeof JobStatus>;

const Id = z.string().trim().min(1).max(256);
const Path = z.string().min(1).max(4_096);
const Sentence = z.string().max(BOUNDS.reasonMaxBytes);
/** Sorted, without duplicates. */
const sorted = (member: z.ZodString) =>
  listOf(member)
    .max(BOUNDS.receiptListMax)
    .transform((list) => [...new Set(list)].sort());

const Metadata = JsonObject.refine(
  (data) => new TextEncoder().encode(JSON.stringify(data)).length <= BOUNDS.receiptMetadataMaxBytes,
  { error: `may have at most ${BOUNDS.receiptMetadataMaxBytes} bytes as JSON` },
);

/** A receipt for a job that a hook has started, and each report on the job. */
export const JobReceipt = z.strictObject({
  status: JobStatus,
  job_id: Id,
  run_id: Id.optional(),
  /** Receipts with the same key belong to the same job. */
  dedupe_key: Id.optional(),
  /** The hook point that started the job. */
  lifecycle_event: z
    .string()
    .refine((name) => hookPointOf(name) !== undefined, {
      error: `must be one of ${HOOK_POINTS.map(pascalNameOfPoint).join(', ')}`,
    })
    .transform((name) => hookPointOf(name) as (typeof HOOK_POINTS)[number])
    .optional(),
  affected_paths: sorted(Path).optional(),
  artifact_ids: sorted(Id).optional(),
  duration_ms: z.number().nonnegative().optional(),
  /** Whether, when and how often a retry may help; for the runner of the job. */
  retry_hint: z
    .strictObject({
      retryable: z.boolean(),
      after_ms: z.number().int().nonnegative().optional(),
      max_attempts: z.number().int().positive().optional(),
      reason: Sentence.optional(),
    })
    .optional(),
  /** Whether a caller that runs the session again should run the job again. A replay never does. */
  replay: z
    .strictObject({
      mode: z.enum(['include', 'skip']),
      determinism_key: Id.optional(),
      reason: Sentence.optional(),
    })
    .optional(),
  error: z
    .union([
      z
        .string()
        .min(1)
        .max(BOUNDS.reasonMaxBytes)
        .transform((message) => ({ message })),
      z.strictObject({ code: Id.optional(), message: z.string().min(1).max(BOUNDS.reasonMaxBytes) }),
    ])
    .optional(),
  metadata: Metadata.optional(),
});
export type JobReceipt = z.infer<typeof JobReceipt>;
/** A receipt before defaults. */
export type JobReceiptInput = z.input<typeof JobReceipt>;

/** The members of {@link JobReceipt} in camelCase. Times are milliseconds. */
export interface JobSettings {
  readonly jobId: string;
  /** Default `queued`. */
  readonly status?: JobStatus | undefined;
  readonly runId?: string | undefined;
  readonly dedupeKey?: string | undefined;
  readonly lifecycleEvent?: string | undefined;
  readonly affectedPaths?: readonly string[] | undefined;
  readonly artifactIds?: readonly string[] | undefined;
  readonly durationMs?: number | undefined;
  readonly retryHint?:
    | {
        readonly retryable: boolean;
        readonly afterMs?: number;
        readonly maxAttempts?: number;
        readonly reason?: string;
      }
    | undefined;
  readonly replay?:
    | { readonly mode: 'include' | 'skip'; readonly determinismKey?: string; readonly reason?: string }
    | undefined;
  readonly error?: string | { readonly code?: string; readonly message: string } | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** Whether a job is unfinished. */
export function isOpenJob({ status }: Pick<JobReceipt, 'status'>): boolean {
  return status === 'queued' || status === 'running';
}
