/** Trouble as a tool's client is told it: a catalogued code and a sentence, never an error of the protocol. */
import { errorOnWire, isNotPermitted } from '@coxswain/client';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

/** What is wrong with a call. */
export interface ToolTrouble {
  readonly code: string;
  readonly message: string;
  /** The argument that is wrong, where one is. */
  readonly field?: string | undefined;
}

/** A tool refuses what it is asked for. */
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

/** The code and the sentence of whatever was thrown; `internal` for an error without a code, which is a bug. */
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
  // Some say their code themselves.
  const said = error.message.startsWith(`${code}: `) ? error.message.slice(code.length + 2) : error.message;
  return { code, message: said, field: typeof field === 'string' ? field : undefined };
}

/** The answer to a call that came to nothing: for models in words, for programs in `_meta`. */
export function troubleResult({ code, message, field }: ToolTrouble): CallToolResult {
  return {
    isError: true,
    content: [{ type: 'text', text: `${code}: ${message}` }],
    _meta: { 'coxswain/error': { code, message, ...(field === undefined ? {} : { field }) } },
  };
}
