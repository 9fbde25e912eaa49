/** The tool port. */
import type {
  Failure,
  HostRules,
  JsonObject,
  McpServers,
  SessionRef,
  Skill,
  StandIns,
  SuspensionRequest,
  ToolDefinition,
  ToolResult,
} from '@coxswain/protocol';

/** One tool call, exactly as it was admitted. */
export interface ToolCall {
  /** `<tenant>.<sid>.<effect id>`: the same when a call is sent again after a crash. */
  readonly idempotencyKey: string;
  readonly ref: SessionRef;
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly epoch: number;
  /**
   * The call may run more than once. It moves to another instance when its instance dies, falls silent or returns it.
   */
  readonly isIdempotent?: boolean | undefined;
  /** How often it may move to another instance; 3 by default. */
  readonly movesMax?: number | undefined;
  /** Sends ephemeral progress to watchers. */
  readonly onProgress: (text: string) => void;
  /**
   * Sends durable inbox feedback to the model, for texts that do not belong to the call's own result. Truncated to 2
   * KiB.
   */
  readonly onFeedback: (text: string) => void;
  /**
   * Called once another process has accepted the call. From then on the call continues without this owner, and the
   * session's next owner can `probe` its outcome. Not called by tools that run in this process or end with it.
   */
  readonly onTaken?: ((instance?: string) => void) | undefined;
  /** The call's position in a trace; undefined without tracing. */
  readonly traceparent?: string | undefined;
}

/** A call that has not been admitted yet. */
export type ApprovalQuestion = Pick<ToolCall, 'ref' | 'callId' | 'tool' | 'args'>;

/**
 * The end of a call.
 * - `cancelled`: it stopped because of the signal.
 * - `unavailable`: no instance accepted it, and nothing ran.
 * - `lost`: its outcome is unknown. Its process died, fell silent or stopped it, and the result has the reason.
 * - `accepted`: it has not ended. Its worker sends the outcome as the command `call_outcome`. The result is not used.
 *   Only for tools that are `long_running`.
 */
export interface ToolOutcome {
  readonly status: 'ok' | 'error' | 'cancelled' | 'unavailable' | 'accepted' | 'lost';
  readonly result: ToolResult;
  /** For an `accepted` call: the epoch of its outcome, if that is older than the call's epoch. */
  readonly epoch?: number | undefined;
  /** For a `lost` call: how often it moved. The caller counts each move as a sending. */
  readonly moves?: number | undefined;
  /**
   * The whole text, if the tool truncated its own result. It is stored separately, so that the model can read the rest.
   */
  readonly whole?: string | undefined;
  /** The call requests the suspension of its session at the end of the turn. Applies only with the status `ok`. */
  readonly park?: SuspensionRequest | undefined;
  /** Edited files, relative to the root. For each of them `file_edited` hooks are called, whatever the status is. */
  readonly edited?: readonly string[];
}

/**
 * The result of a probe of a call that an earlier owner of the session may have sent.
 * - `running`: `attach` waits for the outcome as if this owner had sent the call, under the contract of `call`.
 * - `unknown`: no instance knows the call, or calls of this source cannot be probed.
 * - `silent`: the instances that answered do not know the call. Another instance is connected, does not answer, and may
 *   have it. The adapter bounds the time of this state.
 */
export type ToolProbe =
  | { readonly state: 'unknown' | 'silent' }
  | { readonly state: 'running'; readonly attach: Toolset['call'] }
  | { readonly state: 'done'; readonly outcome: ToolOutcome };

/** The tools of one session, until they are closed. */
export interface Toolset {
  /** In the order of their configuration. */
  readonly tools: readonly ToolDefinition[];
  /** Names of tools in this toolset that currently replace tools of the same name of other sources. */
  readonly replaces?: readonly string[];
  /**
   * Runs one call. Contract: never rejects; if a tool throws, the status is `error`. When `signal` aborts, the tool is
   * notified. A call that does not stop may settle at any later time, and the caller does not wait for it. With the
   * reason `SESSION_LEFT`, only work in this process is notified, because the session's next owner will probe the call.
   */
  call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome>;
  /**
   * Asks a tool with `needs_approval: by_call` whether a person must approve a call with these arguments. Runs nothing.
   * Contract: never rejects; true if the tool cannot answer. The caller bounds the time. Without this method the answer
   * is true.
   */
  needsApproval?(question: ApprovalQuestion, signal: AbortSignal): Promise<boolean>;
  /**
   * Asks for the outcome of a call that an earlier owner may have sent. In-process and MCP tools cannot know it. From
   * then on the tool's instances refuse owners of an older epoch. Never rejects.
   */
  probe(idempotencyKey: string, tool: string, epoch: number): Promise<ToolProbe>;
  /**
   * Requests that the worker of an accepted call stops it. The outcome still arrives as a command. Never rejects.
   * @returns whether a worker was notified.
   */
  stop?(idempotencyKey: string, tool: string, reason: string, epoch: number): Promise<boolean>;
  /** Closes connections. Never rejects. Returns a sentence for each connection that could not be closed. */
  close(): Promise<readonly string[]>;
}

/** The specification of a session's tools. */
export interface ToolsetSpec {
  readonly ref: SessionRef;
  /** Absolute path of the session's root folder. */
  readonly root: string;
  readonly mcpServers: McpServers;
  /** The host's rules for the session. Without them the session may use everything. */
  readonly rules?: HostRules | undefined;
  /** Tools on the bus that replace built-in tools for the session. */
  readonly standIns?: StandIns | undefined;
  /**
   * The persona, if separate processes serve it and run its tools. `tools`: the tools of this version, as announced with it or
   * as the session has pinned them.
   */
  readonly served?:
    | { readonly name: string; readonly version: string; readonly tools?: readonly ToolDefinition[] | undefined }
    | undefined;
  /** Receives inbox feedback without a call, such as a server's notifications. Absent without a receiver. */
  readonly onFeedback?: ((source: string, text: string) => void) | undefined;
  /** Reads the rest of truncated results. Without it the tools do not offer this. */
  readonly results?: WholeResults | undefined;
  /** The skills of the session's persona, with their full texts. Without skills the tools do not offer to load them. */
  readonly skills?: readonly Skill[] | undefined;
}

/** A piece of a truncated result. Offsets are bytes of UTF-8. A piece contains whole characters only. */
export interface ResultPiece {
  readonly text: string;
  readonly offset: number;
  /** The offset of the next piece, or null at the end. */
  readonly next: number | null;
  /** The size of the whole result. */
  readonly bytes: number;
}

/** The whole results of one session, by the references in the truncated ones. */
export interface WholeResults {
  /**
   * Reads a piece of at most `limit` bytes. `unknown`: no result of this session has this reference. `gone`: the bytes
   * are no longer in the object store. Rejects if the object store cannot be reached.
   */
  read(ref: string, offset: number, limit: number): Promise<ResultPiece | 'unknown' | 'gone'>;
}

/** One source of tools: built-in tools, MCP servers, code of the embedding program, or the bus. */
export interface ToolSource {
  /**
   * Its tools have lower precedence than tools of the same name of other sources, because third parties choose their
   * names.
   */
  readonly hasLowerPrecedence?: boolean;
  /** Opens the session's tools. Returns a failure with a catalogued code if that is impossible. Never rejects. */
  open(spec: ToolsetSpec, signal: AbortSignal): Promise<Toolset | Failure>;
}
