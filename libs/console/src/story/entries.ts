/** What a transcript shows, one entry below another. */
import type { CallStatus, InjectionVerb, Json, Mode, SeamKind, StopReason } from '@coxswain/protocol';
import type { TokenUsage } from '../browser-client.ts';

interface Placed {
  /** Unique within the transcript, and the same however often it is told. */
  readonly key: string;
  /** The record that it came with; of a running answer, the newest one before it. */
  readonly n: number;
  readonly at: string;
}

/** Somebody asks for work. */
export interface PromptEntry extends Placed {
  readonly kind: 'prompt';
  readonly text: string;
  readonly actor: string | null;
}

/** A run begins. */
export interface RunEntry extends Placed {
  readonly kind: 'run';
  readonly run: number;
  readonly persona: string | null;
  readonly model: string | null;
}

/** A model's answer, as far as it has come. */
export interface AnswerEntry extends Placed {
  readonly kind: 'answer';
  readonly turn: number;
  readonly text: string;
  readonly reasoning: string;
  /** More of it is expected. */
  readonly live: boolean;
  readonly partial: boolean;
  readonly usage: TokenUsage | null;
}

/** How a call stands: `waiting` for a person, `running`, or as it has ended. */
export type CallStanding = 'waiting' | 'running' | CallStatus;

/** One call of a tool. */
export interface CallEntry extends Placed {
  readonly kind: 'call';
  readonly callId: string;
  readonly tool: string;
  /** Null where they were never seen. */
  readonly args: Json;
  readonly summary: string;
  readonly standing: CallStanding;
  /** Newest word of one that runs. */
  readonly progress: string;
  readonly result: string | null;
  /** Media types of what came beside text. */
  readonly files: readonly string[];
  readonly isError: boolean;
  /** When it began to run. */
  readonly startedAt: string | null;
  /** When it ended; null while it waits or runs. */
  readonly endedAt: string | null;
  readonly durationMs: number | null;
  /** How its approval was decided, in words. */
  readonly decision: string | null;
  /** Sessions that work for it. */
  readonly children: readonly string[];
}

/** Something that was said meanwhile has reached the session. */
export interface InjectionEntry extends Placed {
  readonly kind: 'injection';
  readonly commandId: string;
  readonly origin: InjectionVerb | 'feedback' | 'direct';
  readonly text: string;
  readonly actor: string | null;
  readonly seam: SeamKind | 'steering_check' | 'hook';
  readonly turn: number | null;
}

/** How a notice is meant. */
export type Tone = 'plain' | 'warning' | 'error';

/** Anything else that is worth a line. */
export interface NoticeEntry extends Placed {
  readonly kind: 'notice';
  readonly tone: Tone;
  readonly text: string;
  /** A session that it is about. */
  readonly session?: string;
}

/** A run has ended. */
export interface EndEntry extends Placed {
  readonly kind: 'end';
  readonly run: number;
  readonly stopReason: StopReason;
  readonly turns: number;
  readonly usage: TokenUsage;
  readonly costUsd: number | null;
  readonly problem: string | null;
}

/** One entry. */
export type Entry = PromptEntry | RunEntry | AnswerEntry | CallEntry | InjectionEntry | NoticeEntry | EndEntry;

/** What waits to be delivered. */
export interface PendingInjection {
  readonly commandId: string;
  readonly kind: InjectionVerb;
  readonly text: string;
  readonly mode: Mode | null;
  readonly actor: string | null;
  readonly at: string;
}

/** A call that waits for a person. */
export interface OpenApproval {
  readonly callId: string;
  readonly tool: string;
  readonly args: Json;
  readonly requestedBy: string;
  readonly question: string | null;
  readonly at: string;
}
