/** The entries of a transcript. */
import type { CallStatus, InjectionVerb, Json, Mode, SeamKind, StopReason } from '@coxswain/protocol';
import type { TokenUsage } from '../browser-client.ts';

interface Placed {
  /** Unique within the transcript, and stable when the records are replayed. */
  readonly key: string;
  /** The number of its record; for a running answer, the newest record before it. */
  readonly n: number;
  readonly at: string;
}

/** The prompt of a run. */
export interface PromptEntry extends Placed {
  readonly kind: 'prompt';
  readonly text: string;
  readonly actor: string | null;
}

/** The start of a run. */
export interface RunEntry extends Placed {
  readonly kind: 'run';
  readonly run: number;
  readonly persona: string | null;
  readonly model: string | null;
}

/** A model's answer, complete or still streaming. */
export interface AnswerEntry extends Placed {
  readonly kind: 'answer';
  readonly turn: number;
  readonly text: string;
  readonly reasoning: string;
  /** Whether more text is expected. */
  readonly live: boolean;
  readonly partial: boolean;
  readonly usage: TokenUsage | null;
}

/** The status of a call: `waiting` for an approval, `running`, or how it ended. */
export type CallStanding = 'waiting' | 'running' | CallStatus;

/** A tool call. */
export interface CallEntry extends Placed {
  readonly kind: 'call';
  readonly callId: string;
  readonly tool: string;
  /** Null if they are unknown. */
  readonly args: Json;
  readonly summary: string;
  readonly standing: CallStanding;
  /** The latest progress of a running call. */
  readonly progress: string;
  readonly result: string | null;
  /** The file names of its files, or their media types. */
  readonly files: readonly string[];
  readonly isError: boolean;
  /** When it started to run; null before. */
  readonly startedAt: string | null;
  /** When it ended; null while it waits or runs. */
  readonly endedAt: string | null;
  readonly durationMs: number | null;
  /** The decision about its approval, in words. */
  readonly decision: string | null;
  /** The ids of the sessions that work for it. */
  readonly children: readonly string[];
}

/** A message that was delivered to the session during a run. */
export interface InjectionEntry extends Placed {
  readonly kind: 'injection';
  readonly commandId: string;
  readonly origin: InjectionVerb | 'feedback' | 'direct';
  readonly text: string;
  readonly actor: string | null;
  readonly seam: SeamKind | 'steering_check' | 'hook';
  readonly turn: number | null;
}

/** The severity of a notice. */
export type Tone = 'plain' | 'warning' | 'error';

/** Another event that is shown as one line. */
export interface NoticeEntry extends Placed {
  readonly kind: 'notice';
  readonly tone: Tone;
  readonly text: string;
  /** The id of a related session. */
  readonly session?: string;
}

/** The end of a run. */
export interface EndEntry extends Placed {
  readonly kind: 'end';
  readonly run: number;
  readonly stopReason: StopReason;
  readonly turns: number;
  readonly usage: TokenUsage;
  readonly costUsd: number | null;
  readonly problem: string | null;
}

/** An entry of a transcript. */
export type Entry = PromptEntry | RunEntry | AnswerEntry | CallEntry | InjectionEntry | NoticeEntry | EndEntry;

/** A queued message. */
export interface PendingInjection {
  readonly commandId: string;
  readonly kind: InjectionVerb;
  readonly text: string;
  readonly mode: Mode | null;
  readonly actor: string | null;
  readonly at: string;
}

/** A call with a pending approval. */
export interface OpenApproval {
  readonly callId: string;
  readonly tool: string;
  readonly args: Json;
  readonly requestedBy: string;
  readonly question: string | null;
  readonly at: string;
}
