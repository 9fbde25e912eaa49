/** The `cox` command, for programs that carry it. */
export { EXIT, type ExitCode } from './line/cli-error.ts';
export { dispatch } from './line/dispatch.ts';
