/** `dispatchWithHook`: the only caller of tools. What it is given has passed hooks, gate and people; it runs exactly that. */
import type { Blobs, Clock, ToolCall, ToolOutcome, Toolset } from '@coxswain/ports';
import { BOUNDS, type CallOutcome, EditedPath, type ToolDefinition, type ToolResult } from '@coxswain/protocol';
import { sha256Hex } from './seal-record.ts';

/** One admitted call and the circumstances of its dispatch. */
export interface Dispatch {
  readonly effectId: string;
  readonly call: ToolCall;
  readonly tool: ToolDefinition | undefined;
  /** An earlier owner of the session may have sent it already. */
  readonly inDoubt: boolean;
}

/**
 * Runs one call, or finds out what became of it.
 * Contract: never rejects; every ending is an outcome. Does not wait for a tool that ignores its signal: the caller
 * races it with its grace.
 */
export async function dispatchWithHook(
  toolset: Toolset,
  blobs: Blobs,
  clock: Clock,
  dispatch: Dispatch,
  signal: AbortSignal,
): Promise<CallOutcome> {
  const { call, effectId } = dispatch;
  const startedMs = clock.monotonicMs();
  const outcome = await run(toolset, clock, dispatch, signal);
  const status = outcome.status === 'unavailable' ? 'error' : outcome.status;
  const edited = editedPaths(outcome.edited);
  return {
    type: 'call_outcome',
    effect_id: effectId,
    call_id: call.callId,
    status,
    result: await bounded(blobs, outcome.result),
    ...(outcome.park ? { park: outcome.park } : {}),
    ...(edited.length > 0 ? { edited } : {}),
    duration_ms: Math.max(0, Math.round((clock.monotonicMs() - startedMs) * 1_000) / 1_000),
  };
}

// What a tool says of the files that it has edited must never cost its result.
function editedPaths(said: readonly string[] = []): string[] {
  const paths = said.filter((path) => EditedPath.safeParse(path).success);
  return [...new Set(paths)].sort().slice(0, BOUNDS.editedPathsPerCallMax);
}

type Ended = Omit<ToolOutcome, 'status'> & { readonly status: ToolOutcome['status'] | 'interrupted' };

/** How often a call that an earlier owner's worker still runs is asked after, and for how long in all. */
const PROBE_EVERY_MS = 250;
const PROBES_MAX = 4 * 60 * 60;

async function run(toolset: Toolset, clock: Clock, dispatch: Dispatch, signal: AbortSignal): Promise<Ended> {
  const { call, tool } = dispatch;
  if (!tool) return textOutcome('unavailable', `There is no tool ${call.tool}.`, 'tool_unavailable');
  if (dispatch.inDoubt) {
    for (let probes = 0; probes < PROBES_MAX && !signal.aborted; probes++) {
      const probe = await toolset.probe(call.idempotencyKey, call.tool);
      if (probe.state === 'done') return probe.outcome;
      if (probe.state === 'unknown') break;
      await clock.sleep(PROBE_EVERY_MS, signal);
    }
    if (!tool.traits.idempotent) return INTERRUPTED;
  }
  if (signal.aborted) return textOutcome('cancelled', 'Cancelled before it was sent.', 'tool_interrupted');
  return toolset.call(call, signal);
}

/** An outcome of one sentence. */
export function textOutcome<S extends Ended['status']>(
  status: S,
  text: string,
  code: string,
): { status: S; result: ToolResult } {
  return { status, result: { content: [{ type: 'text', text }], is_error: true, detail: { code } } };
}

/** The end of a call that an earlier owner of the session may have sent, and that must not run twice. */
export const INTERRUPTED = textOutcome(
  'interrupted',
  'Interrupted: the host crashed while this call ran. Whether it took effect is not known; it was not run again.',
  'tool_interrupted',
);

/** Cuts a result to its bound; the whole goes to the object store, and the result says where. */
async function bounded(blobs: Blobs, result: ToolResult): Promise<ToolResult> {
  let size = 0;
  for (const part of result.content) if (part.type === 'text') size += Buffer.byteLength(part.text, 'utf8');
  if (size <= BOUNDS.toolResultInlineMaxBytes) return result;
  const whole = Buffer.from(result.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n'), 'utf8');
  const sha256 = sha256Hex(whole);
  const stored = await kept(blobs, sha256, whole);
  const shown = cutUtf8(whole, BOUNDS.toolResultInlineMaxBytes - 256);
  const where = stored ? `The whole is kept as sha256 ${sha256}.` : 'The rest could not be kept.';
  const note = `\n[Cut: ${whole.length} bytes in all, the first ${Buffer.byteLength(shown, 'utf8')} shown. ${where}]`;
  return {
    ...result,
    content: [{ type: 'text', text: shown + note }, ...result.content.filter((part) => part.type !== 'text')],
    ...(stored ? { detail: { ...result.detail, whole: { sha256, bytes: whole.length } } } : {}),
  };
}

// The call has run. That its rest cannot be kept now must not cost its outcome.
async function kept(blobs: Blobs, sha256: string, whole: Uint8Array): Promise<boolean> {
  try {
    await blobs.put(sha256, whole);
    return true;
  } catch {
    return false;
  }
}

function cutUtf8(bytes: Buffer, maxBytes: number): string {
  let end = maxBytes;
  // Continuation bytes are 10xxxxxx: step back to the beginning of a character.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
