/** Runs a command line and returns its exit code. The modules of a command are imported after it is chosen. */
// Not imported from the protocol's main entry: help must not wait until all schemas are built.
import { VERSION } from '@coxswain/protocol/version';
import { CliError, EXIT, type ExitCode } from './cli-error.ts';
import { COMMANDS, SECTIONS } from './command-table.ts';
import { withOutput } from './output.ts';
import { parseLine } from './parse-line.ts';

/** Runs one command line. Never rejects: failures are printed. @returns the exit code. */
export async function dispatch(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<ExitCode> {
  // Determined before parsing: a program also reads the error of an invalid line.
  const format = dataFormat(argv);
  try {
    const line = parseLine(argv, COMMANDS);
    if (line.kind === 'version') {
      if (line.json) {
        const { FORMAT_VERSIONS } = await import('@coxswain/session');
        console.info(JSON.stringify({ type: 'version', ...FORMAT_VERSIONS }));
      } else console.info(VERSION);
      return EXIT.ok;
    }
    if (line.kind === 'help') {
      const { printHelp } = await import('./help.ts');
      printHelp(SECTIONS, line);
      return EXIT.ok;
    }
    const { command, flags, args } = line;
    const { run } = await command.load();
    return await withOutput(flags, () => run({ command: command.name, flags, args, env }));
  } catch (error) {
    return await printError(error, format, argv[0] === 'serve');
  }
}

/** The format of output for programs: `--json`, `-o json` or `-o yaml`; null for output for people. */
function dataFormat(argv: readonly string[]): 'json' | 'yaml' | null {
  for (const [at, word] of argv.entries()) {
    if (word === '--json') return 'json';
    const value = word === '-o' || word === '--output' ? argv[at + 1] : /^(?:-o|--output=)(.+)$/.exec(word)?.[1];
    if (value === 'json' || value === 'yaml') return value;
  }
  return null;
}

/** Prints an error. @param isService both streams go to one log. With a `format`, every line of it must be JSON. */
async function printError(error: unknown, format: 'json' | 'yaml' | null, isService: boolean): Promise<ExitCode> {
  const known = await coded(error);
  const { exitCode, code, message } = asFailure(known);
  // Errors of the command line itself already contain the remedy.
  const remedy = error instanceof CliError || code === 'internal' ? undefined : await remedyOf(code);
  const stack = code === 'internal' && error instanceof Error ? error.stack : undefined;
  const { field, detail } = known instanceof Error ? (known as { field?: unknown; detail?: unknown }) : {};
  const failure = { type: 'error', code, message, field, detail, remedy, exit_code: exitCode };
  if (format !== null) {
    const line = `${JSON.stringify(isService ? { ...failure, stack } : failure)}\n`;
    process.stdout.write(format === 'yaml' ? (await import('./yaml-documents.ts')).yamlDocuments(line) : line);
  }
  if (format !== null && isService) return exitCode;
  process.stderr.write(`cox: ${await shown(message)}\n${remedy === undefined ? '' : `  → ${remedy}\n`}`);
  // A failure without a code is a bug, and its stack helps to find it.
  if (stack !== undefined) process.stderr.write(`${await shown(stack)}\n`);
  return exitCode;
}

/** The remedy for a code from the error catalogue. */
async function remedyOf(code: string): Promise<string | undefined> {
  const { ERROR_CATALOGUE, isErrorCode } = await import('@coxswain/protocol');
  return isErrorCode(code) ? ERROR_CATALOGUE[code].caller : undefined;
}

/** Converts errors of the NATS library into errors with a code, and names fields as on the wire. */
async function coded(error: unknown): Promise<unknown> {
  if (error instanceof CliError || !(error instanceof Error)) return error;
  const { code, field } = error as { readonly code?: unknown; readonly field?: unknown };
  if (typeof code === 'string' && field === undefined) return isSystemError(error) ? systemError(error) : error;
  const { toClientError, errorOnWire } = await import('@coxswain/client');
  if (typeof code === 'string') return errorOnWire(error);
  return toClientError(error) ?? error;
}

function isSystemError(error: NodeJS.ErrnoException): boolean {
  return error.syscall !== undefined && error.errno !== undefined;
}

/** An error of the operating system that no command has explained. */
async function systemError(error: NodeJS.ErrnoException): Promise<Error> {
  const { systemTrouble } = await import('@coxswain/ports/discovery');
  const trouble = systemTrouble(error);
  // The system's own message already names the path or the address.
  const message = trouble === error.message ? trouble : `${error.path ?? error.syscall}: ${trouble}`;
  return Object.assign(new Error(message, { cause: error }), { code: 'system_error' });
}

/** Removes characters that control a terminal, because a message may quote foreign text. */
async function shown(message: string): Promise<string> {
  // Plain ASCII text needs no import.
  if (/^[\n\x20-\x7e]*$/.test(message)) return message;
  const { printable } = await import('@coxswain/client');
  return printable(message);
}

/**
 * Codes of starts that a host rejects because it cannot ask the model. The command line or the host's settings must
 * change.
 */
const REFUSED_STARTS: ReadonlySet<string> = new Set([
  'model_key_missing',
  'model_not_given',
  'provider_unknown',
  'provision_failed',
  'script_invalid',
]);

/** Whether a permission violation of the server is an error or one of its causes. */
function isForbidden(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return false;
  return error.name === 'PermissionViolationError' || isForbidden(error.cause, depth + 1);
}

const CAUSES_MAX = 8;

function asFailure(error: unknown): { exitCode: ExitCode; code: string; message: string } {
  if (error instanceof CliError) return error;
  if (!(error instanceof Error)) return { exitCode: EXIT.error, code: 'internal', message: String(error) };
  if (isForbidden(error)) {
    const message = `not_permitted: this NATS user has no permission (permissions violation); see the roles of cox admin auth: ${error.message}`;
    return { exitCode: EXIT.error, code: 'not_permitted', message };
  }
  const { code, commandId } = error as { code?: unknown; commandId?: unknown };
  if (typeof code !== 'string') return { exitCode: EXIT.error, code: 'internal', message: error.message };
  // A command that was rejected before it was sent has an invalid flag or argument.
  const isInputError = error.name === 'CommandRejectedError' && (commandId === undefined || REFUSED_STARTS.has(code));
  return { exitCode: isInputError ? EXIT.usage : EXIT.error, code, message: `${code}: ${error.message}` };
}
