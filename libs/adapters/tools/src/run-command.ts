/** The tool `run_command`: runs a shell command in the root folder. The command is not confined to it. */
import type { ToolOutcome } from '@coxswain/ports';
import { cutText, cutTextToEnd, type JsonObject } from '@coxswain/protocol';
import { middleCut } from './bounded-text.ts';
import type { BuiltInTool } from './built-in-tool.ts';
import { commandEnvironment } from './command-environment.ts';
import { withoutEscapeSequences } from './escape-sequences.ts';
import { KeptOutput } from './kept-output.ts';
import { type GroupEnd, runInGroup } from './process-group.ts';
import { sendCommand } from './send-command.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { textResult } from './tool-outcome.ts';
import { messageOf, ToolProblem } from './tool-problem.ts';

/** Settings of `run_command`. */
export interface RunCommandOptions {
  /** The shell, which gets `-c <command>`; `/bin/sh` by default. */
  readonly shell?: string;
  /** The timeout of a command without its own, in milliseconds; 120,000 by default. */
  readonly timeoutMs?: number;
  /** The maximum timeout of a call, in milliseconds; 3,600,000 by default. */
  readonly timeoutMaxMs?: number;
  /** Names or globs of further host variables for commands, in addition to PATH, HOME, USER, LANG and similar ones. */
  readonly inheritEnv?: readonly string[];
  /** Additional variables for commands. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The absolute path of a command runner's socket, see {@link startCommandRunner}. With it, commands run in the
   * runner, with its environment, and never in this process.
   */
  readonly socket?: string | undefined;
}

/** Creates the tool `run_command`. */
export function runCommandTool(options: RunCommandOptions): BuiltInTool<ReturnType<typeof parametersFor>> {
  const maximum = options.timeoutMaxMs ?? TOOL_BOUNDS.commandTimeoutMaxMs;
  const byDefault = Math.min(options.timeoutMs ?? TOOL_BOUNDS.commandTimeoutDefaultMs, maximum);
  return {
    name: 'run_command',
    description:
      'Runs a shell command with the root folder as its working directory and returns its output (standard output ' +
      'and standard error combined) and its exit code. The command gets no input. Background processes that it leaves ' +
      'are terminated. Of long output only the beginning and the end are kept.',
    parameters: parametersFor(byDefault, maximum),
    traits: {},
    async run(
      { command, timeout_ms = byDefault, cwd = '.' },
      { root, bounds, abortSignal: signal, progress, feedback },
    ) {
      if (command.includes('\0')) throw new ToolProblem('invalid_call_arguments', 'the command contains a NUL byte');
      const folder = await root.openFolder(cwd);
      await folder.close();
      const output = new KeptOutput(TOOL_BOUNDS.commandKeptMaxBytes, bounds.textMaxBytes);
      const shown = new ProgressTail(progress);
      const take = (chunk: Buffer) => {
        output.add(chunk);
        shown.add(chunk);
        return undefined;
      };
      const { shell = '/bin/sh', inheritEnv = [], env = {}, socket } = options;
      let end: GroupEnd | ToolOutcome;
      try {
        if (socket !== undefined) {
          const sent = { shell, command, cwd: folder.path, inherit: [...inheritEnv], env: { ...env }, timeout_ms };
          end = await sendCommand(socket, sent, take, signal);
        } else {
          const environment = commandEnvironment(process.env, inheritEnv, env);
          const started = { file: shell, args: ['-c', command], cwd: folder.path, env: environment };
          end = await runInGroup({ ...started, timeoutMs: timeout_ms, onOutput: take }, signal);
        }
      } catch (error) {
        if (error instanceof ToolProblem || signal.aborted) throw error;
        throw new ToolProblem('tool_failed', `the command could not be started: ${messageOf(error)}`);
      } finally {
        shown.stop();
      }
      if ('status' in end) return end;
      const written = shownOutput(output, bounds.textMaxBytes);
      for (const notice of policyNotices(command, end, written, timeout_ms, maximum)) feedback(notice);
      return commandOutcome(end, written, timeout_ms);
    },
  };
}

function parametersFor(byDefault: number, maximum: number) {
  return {
    command: {
      type: 'string',
      description: 'The shell command line.',
      minLength: 1,
      maxLength: TOOL_BOUNDS.commandMaxChars,
    },
    cwd: {
      type: 'string',
      description: 'Working directory, relative to the root folder. Default: the root folder.',
      minLength: 1,
      optional: true,
    },
    timeout_ms: {
      type: 'integer',
      description: `Milliseconds after which the command and its child processes are terminated. Default: ${byDefault}.`,
      minimum: 1,
      maximum,
      optional: true,
    },
  } as const;
}

/** The output of a command in the form for the model. */
interface ShownOutput {
  readonly text: string;
  /** The kept output, if `text` is cut. */
  readonly whole: string | undefined;
  readonly total: number;
  /** The number of bytes between the beginning and the end that were not kept. */
  readonly dropped: number;
}

function shownOutput(output: KeptOutput, maxBytes: number): ShownOutput {
  const { head, tail, dropped, total } = output.kept();
  // Without a gap both are decoded together, so that no character between them is split.
  const [beginning, ending] =
    dropped > 0 ? [readable(head), readable(tail)] : [readable(Buffer.concat([head, tail])), ''];
  const text = middleCut(beginning, ending, dropped, maxBytes);
  const gap = dropped > 0 ? `\n[... ${dropped} bytes of output were not kept ...]\n` : '';
  const isCut = text !== beginning + ending;
  return { text, whole: isCut ? beginning + gap + ending : undefined, total, dropped };
}

function commandOutcome(end: GroupEnd, { text, whole, total, dropped }: ShownOutput, timeoutMs: number): ToolOutcome {
  const notes = [endInWords(end, timeoutMs)];
  if (dropped > 0) notes.push(`[${total} bytes of output in total; ${dropped} in the middle were not kept]`);
  if (text === '') notes.push('[no output]');
  if (end.leftovers) notes.push('[its background processes were terminated]');
  const detail: JsonObject = {
    ...(end.why === 'timeout' ? { code: 'command_timeout' } : {}),
    exit_code: end.exitCode,
    ...(end.exitSignal === null ? {} : { exit_signal: end.exitSignal }),
    output_bytes: total,
  };
  const status = end.why === 'aborted' ? 'cancelled' : end.why === 'exited' && end.exitCode === 0 ? 'ok' : 'error';
  const result = textResult(status !== 'ok', [text, ...notes], detail);
  return { status, result, whole };
}

function endInWords({ why, exitCode, exitSignal }: GroupEnd, timeoutMs: number): string {
  if (why === 'timeout')
    return `[timed out after ${timeoutMs} ms; the command and its child processes were terminated]`;
  if (why === 'aborted') return '[cancelled; the command and its child processes were terminated]';
  return exitCode === null ? `[terminated by ${exitSignal}]` : `[exit code ${exitCode}]`;
}

const COMMAND_SHOWN_CHARS = 200;

/** Notices about the effects of the host's limits on this command, with advice for the model. */
function policyNotices(
  command: string,
  end: GroupEnd,
  { total, dropped }: ShownOutput,
  timeoutMs: number,
  timeoutMaxMs: number,
): string[] {
  const shown = command.length <= COMMAND_SHOWN_CHARS ? command : `${cutText(command, COMMAND_SHOWN_CHARS)}…`;
  const notices: string[] = [];
  if (end.why === 'timeout') {
    const more =
      timeoutMs < timeoutMaxMs
        ? `Set timeout_ms, at most ${timeoutMaxMs}, for commands that need longer.`
        : 'This is the longest time that the host allows: divide the work.';
    notices.push(`The host terminated the command after ${timeoutMs} ms: ${shown}\n${more}`);
  }
  // The model can read the kept output, as the result explains. The rest is lost.
  if (dropped > 0) {
    notices.push(
      `The command wrote ${total} bytes of output. Only the beginning and the end were kept: ${shown}\nTo see the rest, filter the output, or write it to a file and read the file in parts.`,
    );
  }
  return notices;
}

function readable(bytes: Buffer): string {
  return withoutEscapeSequences(bytes.toString('utf8'));
}

/** Sends the end of the output to watchers, at a limited rate. */
class ProgressTail {
  readonly #show: (text: string) => void;
  readonly #decoder = new TextDecoder('utf-8');
  #pending = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  add(chunk: Buffer): void {
    const pending = this.#pending + this.#decoder.decode(chunk, { stream: true });
    this.#pending = cutTextToEnd(pending, TOOL_BOUNDS.commandProgressMaxChars);
    this.#timer ??= setTimeout(() => this.#flush(), TOOL_BOUNDS.commandProgressIntervalMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#flush();
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#pending !== '') this.#show(this.#pending);
    this.#pending = '';
  }
}
