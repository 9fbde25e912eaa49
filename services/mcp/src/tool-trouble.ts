/** Error results of tools: a code of the error catalogue with a message, instead of a protocol error. */
import { errorOnWire, isNotPermitted } from '@coxswain/client';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

/** The error of a call. */
export interface ToolTrouble {
  readonly code: string;
  readonly message: string;
  /** The invalid argument, if any. */
  readonly field?: string | undefined;
}

/** A tool rejects its arguments. */
export class ToolRefusal extends Error {
  override readonly name = 'ToolRefusal';
  readonly code: string;
  readonly field: string | undefined;

  constructor(code: string, message: string, field?: string) {
    super(message);
    this.code = code;
    this.field = field;
  }
}

/** The code and the message of an error. An error without a code becomes `internal`; it is a bug. */
export function troubleOf(given: unknown): ToolTrouble {
  const error = errorOnWire(given);
  if (!(error instanceof Error)) return { code: 'internal', message: String(error) };
  if (isNotPermitted(error))
    return {
      code: 'not_permitted',
      message: `this NATS user has no permission (permissions violation): ${error.message}`,
    };
  const { code, field } = error as { readonly code?: unknown; readonly field?: unknown };
  if (typeof code !== 'string') return { code: 'internal', message: error.message };
  // Some messages already start with the code.
  const said = error.message.startsWith(`${code}: `) ? error.message.slice(code.length + 2) : error.message;
  return { code, message: said, field: typeof field === 'string' ? field : undefined };
}

/** The result of a failed call: text for models, and `_meta` for programs. */
export function troubleResult({ code, message, field }: ToolTrouble): CallToolResult {
  return {
    isError: true,
    content: [{ type: 'text', text: `${code}: ${message}` }],
    _meta: { 'coxswain/error': { code, message, ...(field === undefined ? {} : { field }) } },
  };
}
