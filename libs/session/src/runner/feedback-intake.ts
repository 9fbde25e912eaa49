/**
 * Feedback of tools, MCP servers and hooks for the model of one session. It waits in a buffer. One job at a time in the
 * mailbox records all of it.
 */
import type { Log } from '@coxswain/ports';
import { BOUNDS, type JournalRecord } from '@coxswain/protocol';
import { type FeedbackBuffer, logLostFeedback } from './feedback-buffer.ts';

/** Takes the feedback of one session. */
export class FeedbackIntake {
  /** The feedback that no record holds yet. */
  readonly buffer: FeedbackBuffer;
  readonly #log: Log;
  readonly #sessionId: string;
  readonly #postJob: () => void;
  #jobIsQueued = false;

  /** @param postJob puts the job that records the feedback into the mailbox. */
  constructor(buffer: FeedbackBuffer, log: Log, sessionId: string, postJob: () => void) {
    this.buffer = buffer;
    this.#log = log;
    this.#sessionId = sessionId;
    this.#postJob = postJob;
  }

  /**
   * Takes one text. While the session holds as many undelivered texts as it may, new ones stay in the bounded buffer until
   * the next outcome of an effect. So a server that never stops notifying cannot fill the journal.
   * @param undelivered the number of recorded texts that still wait for delivery to the model.
   */
  take(source: string, text: string, undelivered: number): void {
    this.buffer.add(source, text);
    if (undelivered < BOUNDS.feedbackPendingMax) this.post();
  }

  /** Queues the job that records the feedback, unless it is queued or there is none. */
  post(): void {
    if (this.#jobIsQueued || this.buffer.isEmpty) return;
    this.#jobIsQueued = true;
    this.#postJob();
  }

  /** The job runs. @returns whether there is feedback to record. */
  startJob(): boolean {
    this.#jobIsQueued = false;
    return !this.buffer.isEmpty;
  }

  /**
   * Removes the offered feedback from the buffer if this record of the journal holds it (FEEDBACK-1,
   * feedback-buffer.ts).
   */
  readonly recall = (record: JournalRecord): void => this.buffer.recall(record);

  /** Drops the feedback, and logs that it is lost. */
  lose(): void {
    if (this.buffer.isEmpty) return;
    this.buffer.clear();
    logLostFeedback(this.#log, this.#sessionId);
  }
}
