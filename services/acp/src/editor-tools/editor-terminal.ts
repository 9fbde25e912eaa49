/** Runs commands in a terminal of the editor, where the user sees the output. */
import { type AgentContext, methods, type ToolCallContent } from '@agentclientprotocol/sdk';
import { TOOL_BOUNDS, withoutEscapeSequences } from '@coxswain/adapter-tools';
import type { ToolResult } from '@coxswain/protocol';
import { writeDiagnostic } from '../diagnostics.ts';
import { textResult } from './editor-files.ts';

/** One command for the editor's terminal. */
export interface EditorCommand {
  readonly sessionId: string;
  readonly command: string;
  /** Absolute path. */
  readonly cwd: string;
  readonly timeoutMs: number;
  /** Aborts to kill the command. */
  readonly signal: AbortSignal;
  /** Shows the terminal in the view of its call. */
  show(content: ToolCallContent): Promise<void>;
}

/** Bytes of output that fit into a result, however they are escaped. */
const OUTPUT_MAX_BYTES = 24 * 1024;

/**
 * Runs a command until it exits, its time limit passes, or `signal` aborts.
 * @throws the reason of `signal`; Error if the editor does not report the end of a killed command in time.
 */
export async function runInTerminal(client: AgentContext, asked: EditorCommand): Promise<ToolResult> {
  const { sessionId, command, cwd, timeoutMs, signal, show } = asked;
  const [shell, ...args] =
    process.platform === 'win32' ? ['cmd.exe', '/d', '/s', '/c', command] : ['/bin/sh', '-c', command];
  const terminal = await client.createTerminal({
    sessionId,
    command: shell as string,
    args,
    cwd,
    outputByteLimit: OUTPUT_MAX_BYTES,
  });
  const late = AbortSignal.timeout(Math.min(timeoutMs, TOOL_BOUNDS.commandTimeoutMaxMs));
  const either = AbortSignal.any([signal, late]);
  const unended = new AbortController();
  let grace: NodeJS.Timeout | undefined;
  const kill = () => {
    // The kill fails if the editor has disconnected, which ends the command too.
    terminal.kill().catch(() => undefined);
    grace = setTimeout(() => unended.abort(), TOOL_BOUNDS.commandAnswerGraceMs);
  };
  either.addEventListener('abort', kill, { once: true });
  if (either.aborted) kill();
  try {
    await show({ type: 'terminal', terminalId: terminal.id });
    const { exitCode = null, signal: exitSignal = null } = await client.request(
      methods.client.terminal.waitForExit,
      { sessionId, terminalId: terminal.id },
      { cancellationSignal: unended.signal, stopWaitingOnCancel: true },
    );
    const { output, truncated } = await terminal.currentOutput();
    signal.throwIfAborted();
    const notes = [late.aborted ? `[timed out after ${timeoutMs} ms]` : ended(exitCode, exitSignal)];
    if (truncated) notes.push(`[only the last ${OUTPUT_MAX_BYTES} bytes of the output are shown]`);
    const failed = late.aborted || exitCode !== 0;
    const detail = { ...(late.aborted ? { code: 'command_timeout' } : {}), exit_code: exitCode };
    return textResult([withoutEscapeSequences(output), ...notes], detail, failed);
  } catch (error) {
    if (!unended.signal.aborted) throw error;
    const withinMs = TOOL_BOUNDS.commandAnswerGraceMs;
    throw new Error(`the editor did not end the command within ${withinMs} ms after its kill; it may still run`);
  } finally {
    either.removeEventListener('abort', kill);
    clearTimeout(grace);
    // The command has ended. An error here must not replace its result, after which a model may run it again.
    terminal.release().catch((error: Error) => writeDiagnostic(`a terminal was not released: ${error.message}`));
  }
}

function ended(exitCode: number | null, exitSignal: string | null): string {
  return exitCode === null ? `[ended by ${exitSignal ?? 'a signal'}]` : `[exit code ${exitCode}]`;
}
