import type { WholeResults } from '@coxswain/ports';
import { headWithin } from './bounded-text.ts';
import type { BuiltInTool } from './built-in-tool.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  ref: {
    type: 'string',
    description: 'The reference at the end of the truncated result.',
    minLength: 1,
    maxLength: 64,
  },
  offset: {
    type: 'integer',
    description: 'The byte to continue at. Default: 0, the start.',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    optional: true,
  },
  limit: {
    type: 'integer',
    description: `The number of bytes to read. Default: ${TOOL_BOUNDS.resultPieceDefaultBytes}.`,
    minimum: 16,
    maximum: TOOL_BOUNDS.resultMaxBytes,
    optional: true,
  },
} as const;

/** The tool `read_result`: reads the rest of a truncated result. */
export function readResultTool(results: WholeResults): BuiltInTool<typeof parameters> {
  return {
    name: 'read_result',
    description:
      'Reads more of an earlier result that was truncated. The end of such a result gives the ' +
      'reference and the offset to continue with.',
    parameters,
    traits: { idempotent: true },
    async run({ ref, offset = 0, limit = TOOL_BOUNDS.resultPieceDefaultBytes }, { bounds }) {
      const piece = await results.read(ref, offset, limit);
      if (piece === 'unknown')
        throw new ToolProblem('result_unknown', `no result of this session has the reference ${ref}`);
      if (piece === 'gone') throw new ToolProblem('result_unknown', `the result ${ref} is no longer stored`);
      const text = headWithin(piece.text, bounds.textMaxBytes);
      const cut = text.length < piece.text.length;
      const end = piece.offset + Buffer.byteLength(text, 'utf8');
      const next = cut ? end : piece.next;
      const where = `bytes ${piece.offset} to ${end} of ${piece.bytes}`;
      const note = next === null ? `[${where}: the end]` : `[${where}: read more with offset ${next}]`;
      return succeeded(text, [note], { bytes: piece.bytes, ...(next === null ? {} : { next_offset: next }) });
    },
  };
}
