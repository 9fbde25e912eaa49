/** The tool port. */
import type {
  Failure,
  HostRules,
  JsonObject,
  McpServers,
  ParkRequest,
  SessionRef,
  Skill,
  StandIns,
  ToolDefinition,
  ToolResult,
} from '@coxswain/protocol';

/** One call, exactly as it was admitted. */
export interface ToolCall {
  /** `<tenant>.<sid>.<effect id>`: the same when a call is sent again after a crash. */
  readonly idempotencyKey: string;
  readonly ref: SessionRef;
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly epoch: number;
  /** It may run more than once: it moves to another instance when the one that took it dies, falls silent or gives it up. */
  readonly isIdempotent?: boolean | undefined;
  /** How often it may move, 3 without it. */
  readonly movesMax?: number | undefined;
  /** Progress for watchers; ephemeral. */
  readonly onProgress: (text: string) => void;
  /** Inbox feedback for the model, durable: what the call's own result is not the place for. At most 2 KiB; the rest is cut. */
  readonly onFeedback: (text: string) => void;
  /**
   * Called once a process outside of this one has the call: from then on it continues without this owner, and the
   * session's next owner can `probe` its outcome. Never called by tools that run in this process, or that end with it.
   */
  readonly onTaken?: ((instance?: string) => void) | undefined;
  /** The call's position in a trace; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** A call that has not been admitted yet. */
export type ApprovalQuestion = Pick<ToolCall, 'ref' | 'callId' | 'tool' | 'args'>;

/**
 * The end of a call. `cancelled`: it stopped because of the signal. `unavailable`: no instance took it; nothing ran.
 * `lost`: its outcome is unknown, and the result has the reason: its process died, fell silent or stopped it.
 * `accepted`: it has not ended; its worker sends the outcome as the command `call_outcome`. Only for tools that are
 * `long_running`; the result is not used.
 */
export interface ToolOutcome {
  readonly status: 'ok' | 'error' | 'cancelled' | 'unavailable' | 'accepted' | 'lost';
  readonly result: ToolResult;
  /** Of an `accepted` call: the epoch that its outcome comes with, where that is older than the call's. */
  readonly epoch?: number | undefined;
  /** Of a `lost` call: how often it moved. The caller counts these as sendings. */
  readonly moves?: number | undefined;
  /** The whole text, if the tool itself truncated its result. It is stored separately, for reading on. */
  readonly whole?: string | undefined;
  /** The call asks its session to be parked at the end of the turn. Counts only where it went well. */
  readonly park?: ParkRequest | undefined;
  /** Edited files, relative to the root, for any status: file_edited hooks are called. */
  readonly edited?: readonly string[];
}

/**
 * What is known of a call that an earlier owner of the session may have sent. Of one that runs, `attach` waits for the
 * outcome as if this owner had sent it, under the contract of `call`. `silent`: all instances that answer know nothing of it,
 * and another one, which is connected and does not answer, may have it. That state is bounded by the adapter.
 */
export type ToolProbe =
  | { readonly state: 'unknown' | 'silent' }
  | { readonly state: 'running'; readonly attach: Toolset['call'] }
  | { readonly state: 'done'; readonly outcome: ToolOutcome };

/** The tools of one session, open until closed. */
export interface Toolset {
  /** In the order in which they were configured. */
  readonly tools: readonly ToolDefinition[];
  /** Names of tools among them that go before those of other sources, as of now: they stand in for those. */
  readonly standsIn?: readonly string[];
  /**
   * Runs one call. Contract: never rejects; a tool that throws is an `error` outcome. When `signal` aborts, the tool is
   * notified. A call that does not stop settles at any time, and the caller does not wait for it. With the reason
   * `SESSION_LEFT` only work in this process is notified: the session's next owner will probe the call.
   */
  call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome>;
  /**
   * Asks a tool whose `needs_approval` is `by_call` whether a person must approve a call with these arguments. Runs nothing.
   * Contract: never rejects; true where the tool cannot answer. The caller bounds the time. Absent: true.
   */
  needsApproval?(question: ApprovalQuestion, signal: AbortSignal): Promise<boolean>;
  /**
   * Asks for the outcome of a call that an earlier owner may have sent. In-process and MCP tools cannot know it. From
   * then on the tool's instances refuse owners of an older epoch. Never rejects.
   */
  probe(idempotencyKey: string, tool: string, epoch: number): Promise<ToolProbe>;
  /**
   * Tells the worker that accepted a call to stop. Its outcome still arrives as a command. Never rejects.
   * @returns whether a worker was notified.
   */
  stop?(idempotencyKey: string, tool: string, reason: string, epoch: number): Promise<boolean>;
  /** Closes connections. Never rejects; returns what could not be closed, in words. */
  close(): Promise<readonly string[]>;
}

/** What a session's tools are made from. */
export interface ToolsetSpec {
  readonly ref: SessionRef;
  /** Absolute path of the session's root folder. */
  readonly root: string;
  readonly mcpServers: McpServers;
  /** What the session may use of the host; without it everything. */
  readonly rules?: HostRules | undefined;
  /** Tools of the bus that carry out built-in ones for the session. */
  readonly standIns?: StandIns | undefined;
  /**
   * The persona, where processes of its own serve it and run its tools. `tools`: as the session has pinned them; without it
   * those that are announced are given.
   */
  readonly served?:
    | { readonly name: string; readonly version: string; readonly tools?: readonly ToolDefinition[] | undefined }
    | undefined;
  /** Takes inbox feedback without a call, such as a server's notifications. Absent without a receiver. */
  readonly onFeedback?: ((source: string, text: string) => void) | undefined;
  /** Where results that were cut are read on; without it the tools offer no reading on. */
  readonly results?: WholeResults | undefined;
  /** The skills of the session's persona, whole; without any the tools offer no loading of skills. */
  readonly skills?: readonly Skill[] | undefined;
}

/** A piece of a result that was cut for its record. Offsets are bytes of UTF-8; a piece holds whole characters. */
export interface ResultPiece {
  readonly text: string;
  readonly offset: number;
  /** Where the next piece begins, or null at the end. */
  readonly next: number | null;
  /** Of the whole result. */
  readonly bytes: number;
}

/** The whole results of one session, by the references that stand in those that were cut. */
export interface WholeResults {
  /**
   * Reads a piece of at most `limit` bytes. `unknown`: no result of this session has this reference; `gone`: its bytes
   * are no longer in the object store. Rejects if the object store cannot be reached.
   */
  read(ref: string, offset: number, limit: number): Promise<ResultPiece | 'unknown' | 'gone'>;
}

/** One source of tools: built-ins, MCP servers, code of the embedding program, the bus. */
export interface ToolSource {
  /** Its tools give way to those of the same name of other sources: strangers have named them. */
  readonly yields?: boolean;
  /** Opens the session's tools. Returns a failure, with a catalogued code, where that cannot be done; never rejects. */
  open(spec: ToolsetSpec, signal: AbortSignal): Promise<Toolset | Failure>;
}
