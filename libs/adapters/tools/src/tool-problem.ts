/** Errors of built-in tools. */
import type { ErrorCode, JsonObject } from '@coxswain/protocol';

/**
 * Thrown inside a tool, and converted to an error outcome in function-toolset.ts. It has a code of the catalogue, a
 * sentence for the model, and detail for programs.
 */
export class ToolProblem extends Error {
  override readonly name = 'ToolProblem';
  readonly code: ErrorCode;
  readonly detail: JsonObject;

  constructor(code: ErrorCode, message: string, detail: JsonObject = {}) {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}

/** The system's error code of an exception (`ENOENT`, `EACCES`, …), or null. */
export function systemCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}

/** The message of an exception of any type, also of a value that cannot be converted to text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return 'it threw a value that cannot be converted to text';
  }
}

const SYSTEM_MESSAGES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied (EACCES)',
  EPERM: 'operation not permitted (EPERM)',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder',
  ENOSPC: 'no space left on device',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long',
  EMFILE: 'the host has too many files open',
};

/**
 * Converts a system error to a sentence about the model's path. The system's own message would show paths of the host.
 */
export function systemProblem(path: string, error: unknown): ToolProblem {
  if (error instanceof ToolProblem) return error;
  const code = systemCode(error);
  const words = code === null ? messageOf(error) : (SYSTEM_MESSAGES[code] ?? code);
  return new ToolProblem('tool_failed', `${path}: ${words}`, code === null ? {} : { system_code: code });
}
