/** A table of prices from a file: YAML or JSON, `prices: [{model, input, output, cached_input?}]`. */
import { readRegularFile } from '@coxswain/ports/regular-file';
import { PriceTable, problemSentences, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';

const FILE_MAX_BYTES = 1024 * 1024;
const PriceFile = z.strictObject({ prices: PriceTable });

/** The file of prices cannot be read, or is no table of prices. */
export class PricesUnreadableError extends Error {
  readonly code = 'prices_unreadable';
}

/**
 * Reads a table of prices.
 * @throws PricesUnreadableError naming the file and what is wrong with it.
 */
export async function readPrices(path: string): Promise<PriceTable> {
  let value: unknown;
  try {
    const { bytes } = await readRegularFile(path, FILE_MAX_BYTES);
    const { parse } = await import('../yaml-parser.ts');
    // JSON is YAML. The bound on aliases keeps a small file from becoming a large value.
    value = parse(bytes.toString('utf8'), { maxAliasCount: 100 });
  } catch (error) {
    throw new PricesUnreadableError(`prices ${path}: ${(error as Error).message.trimEnd()}`);
  }
  const read = readStrictly(PriceFile, value);
  if (read.ok) return read.data.prices;
  throw new PricesUnreadableError(`prices ${path}: ${problemSentences(read.problems).join('; ')}`);
}
