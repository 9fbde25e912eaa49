/** Reads a price table from a YAML or JSON file: `prices: [{model, input, output, cached_input?}]`. */
import { readRegularFile } from '@coxswain/ports/regular-file';
import { PriceTable, problemSentences, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';

const FILE_MAX_BYTES = 1024 * 1024;
const PriceFile = z.strictObject({ prices: PriceTable });

/** The price file cannot be read, or is invalid. */
export class PricesUnreadableError extends Error {
  readonly code = 'prices_unreadable';
}

/**
 * Reads a price table.
 * @throws PricesUnreadableError naming the file and its problem.
 */
export async function readPrices(path: string): Promise<PriceTable> {
  let value: unknown;
  try {
    const { bytes } = await readRegularFile(path, FILE_MAX_BYTES);
    const { parse } = await import('../yaml-parser.ts');
    // JSON is YAML. The limit on aliases keeps a small file from expanding into a large value.
    value = parse(bytes.toString('utf8'), { maxAliasCount: 100 });
  } catch (error) {
    throw new PricesUnreadableError(`prices ${path}: ${(error as Error).message.trimEnd()}`);
  }
  const read = readStrictly(PriceFile, value);
  if (read.ok) return read.data.prices;
  throw new PricesUnreadableError(`prices ${path}: ${problemSentences(read.problems).join('; ')}`);
}
