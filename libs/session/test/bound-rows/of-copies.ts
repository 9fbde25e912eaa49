/** Bounds of forks, of exported journals and of what is kept. */
import { blobLine, type JsonObject } from '@coxswain/protocol';
import { sweepBlobs } from '../../src/journal/sweep.ts';
import { ExportedJournal, linesOf, sha256Hex } from '../../src/mod.ts';
import { testBed } from '../test-bed.ts';
import { type BoundRows, from, most } from './row.ts';

const CHUNK = Buffer.alloc(1024 * 1024, 'x');
const BLOB_BYTES = 16 * 1024 * 1024;

/** The rows for bounds of forks, exported journals and retention. */
export const OF_COPIES: BoundRows = {
  // How long the origin is, is looked at afterwards.
  forkRecordsMax: {
    comes: ['fork_record_not_found', 'fork_record_not_found', 'fork_too_long'],
    of: async (n) => {
      const bed = testBed();
      await bed.host();
      await bed.start();
      const id = await bed.send('start', { fork: { session: 's1', n } as JsonObject }, { session: 'f1' });
      return String(bed.receipts.find(({ command_id }) => command_id === id)?.code);
    },
  },
  originsNamedMax: most('1 not named', async (ancestors) => {
    const bed = testBed();
    await bed.host();
    await bed.start({}, { session: 'g0' });
    // In addition to its own origin.
    for (let i = 1; i <= ancestors + 1; i++)
      await bed.send('start', { fork: { session: `g${i - 1}`, n: 1 } }, { session: `g${i}` });
    const [copied] = await bed.eventsOf('session_copied', `g${ancestors + 1}`);
    const missing = ancestors - (copied?.before?.length ?? 0);
    return missing === 0 ? 'ok' : `${missing} not named`;
  }),
  exportLineMaxBytes: most('export_line_invalid', async (bytes) => {
    const input = async function* () {
      for (let left = bytes; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, left);
      yield Buffer.from('\n');
    };
    try {
      for await (const line of linesOf(input())) if (line.length !== bytes) return `${line.length} bytes`;
      return 'ok';
    } catch (error) {
      return (error as { code: string }).code;
    }
  }),
  exportedBlobsMaxBytes: most('export_line_invalid', async (bytes) => {
    const lines = async function* () {
      for (let left = bytes, i = 0; left > 0; left -= BLOB_BYTES, i++) {
        const text = String.fromCharCode(65 + i).repeat(Math.min(left, BLOB_BYTES));
        yield Buffer.from(blobLine({ blob: sha256Hex(text), text }), 'utf8');
      }
    };
    try {
      for await (const _ of new ExportedJournal(lines()).records()) return 'a record';
      return 'ok';
    } catch (error) {
      return (error as { code: string }).code;
    }
  }),
  unusedBlobKeptMs: from('kept', 'deleted', async (ageMs) => {
    const bed = testBed();
    const bytes = Buffer.from('nobody refers to it');
    await bed.bus.blobs.put(sha256Hex(bytes), bytes);
    await bed.time.advance(ageMs);
    return (await sweepBlobs(bed.bus.purge)).deleted === 1 ? 'deleted' : 'kept';
  }),
};
