/** Bounds of what tools give back, and of what of it models are shown. */
import { createMemoryBus } from '@coxswain/adapter-memory';
import type { Blobs } from '@coxswain/ports';
import type { FilePart, ToolMessage, ToolResult } from '@coxswain/protocol';
import { boundResult } from '../../src/effects/bound-result.ts';
import { withStoredFiles } from '../../src/view/shown-files.ts';
import { ask, call, say } from '../fake-model.ts';
import { answer } from '../fake-tools.ts';
import { testBed } from '../test-bed.ts';
import { type BoundRows, filling, list, most } from './row.ts';

const PNG_HEAD = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** A picture of so many bytes. */
function picture(bytes: number): FilePart {
  const data = Buffer.alloc(bytes);
  PNG_HEAD.copy(data);
  return { type: 'file', media_type: 'image/png', data: data.toString('base64') };
}

async function bounded(result: Partial<ToolResult>): Promise<ToolResult> {
  const bus = createMemoryBus();
  const outcome = { status: 'ok' as const, result: { content: [], is_error: false, ...result } };
  const frame = { tool: undefined, hasReadOnTool: true };
  const { result: kept } = await boundResult(bus.blobs, outcome, frame);
  bus.close();
  return kept;
}
const ofText = (size: number) => bounded({ content: [{ type: 'text', text: 'x'.repeat(size) }] });

/** The rows for bounds of tool results. */
export const OF_RESULTS: BoundRows = {
  toolResultInlineMaxBytes: most('cut, the whole is kept', async (size) => {
    const { content, detail } = await ofText(size);
    if (content[0]?.type === 'text' && content[0].text.length === size) return 'ok';
    const whole = detail?.whole as { readonly bytes: number } | undefined;
    return `cut, the whole is ${whole?.bytes === size ? 'kept' : 'lost'}`;
  }),
  toolResultKeptMaxBytes: most('tool_result_too_large', async (size) =>
    String((await ofText(size)).detail?.code ?? 'ok'),
  ),
  toolResultFilesMaxBytes: most('left out', async (size) => {
    const [part] = (await bounded({ content: [picture(size)] })).content;
    return part?.type === 'file' ? 'ok' : 'left out';
  }),
  toolResultPartsMax: most('texts joined, 1 file left out', async (size) => {
    const { content } = await bounded({ content: list(size, () => ({ type: 'text', text: 'x' })) });
    // Nothing is cut, so the text has no note about it.
    const isJoined = content.length === 1 && content[0]?.type === 'text' && content[0].text.length === 2 * size - 1;
    const shown = (await bounded({ content: list(size, () => picture(16)) })).content;
    const left = size - shown.filter(({ type }) => type === 'file').length;
    return content.length === size && left === 0
      ? 'ok'
      : `texts ${isJoined ? 'joined' : content.length}, ${left} file left out`;
  }),
  toolDetailMaxBytes: most('left out, but its code', async (size) => {
    const { code, detail_left_out_bytes } = (await bounded({ detail: { code: 'c', ...filling('text', size - 11) } }))
      .detail as { code: string; detail_left_out_bytes?: number };
    if (detail_left_out_bytes === undefined) return 'ok';
    return detail_left_out_bytes === size && code === 'c' ? 'left out, but its code' : 'lost';
  }),
  shownFilesMaxBytes: most('the older is named only', async (size) => {
    const stored = (sha256: string, bytes: number): ToolMessage => ({
      role: 'tool',
      call_id: sha256,
      tool: 'read',
      status: 'ok',
      is_error: false,
      content: [{ type: 'file', media_type: 'image/png', data: { sha256: sha256.repeat(64), bytes } }],
    });
    // What counts is the size that the reference says; the bytes themselves need not be as many.
    const blobs: Pick<Blobs, 'get'> = { get: async () => PNG_HEAD };
    const messages = await withStoredFiles([stored('a', size - 8), stored('b', 8)], blobs as Blobs, new Map());
    const [older, newer] = messages.map(({ content }) => {
      const [part] = content;
      return part?.type === 'file' && typeof part.data === 'string';
    });
    if (!newer) return 'the newer is missing';
    return older ? 'ok' : 'the older is named only';
  }),
  editedPathsPerCallMax: most('1 left out', async (size) => {
    const bed = testBed();
    bed.tools = { write: { run: async () => ({ ...answer('done'), edited: list(size, (i) => `file-${i}`) }) } };
    bed.models.answers = [ask(call('c1', 'write')), say('done')];
    await bed.host();
    await bed.start();
    const outcome = (await bed.records()).map(({ input }) => input).find(({ type }) => type === 'call_outcome');
    const left = size - (outcome?.type === 'call_outcome' ? (outcome.edited?.length ?? 0) : 0);
    return left === 0 ? 'ok' : `${left} left out`;
  }),
};
