/** Reads the output schema of `cox run --output-schema` from a JSON file. */
import { readFile } from 'node:fs/promises';
import { systemTrouble } from '@coxswain/ports/discovery';
import { type JsonObject, OutputSchema, parseStrictJson, problemSentences, readStrictly } from '@coxswain/protocol';
import { usageError } from '../line/mod.ts';

/**
 * Reads the file.
 * @throws CliError with exit code 2 naming the problem.
 */
export async function readSchemaFile(path: string): Promise<JsonObject> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usageError(`--output-schema ${path} cannot be read: ${systemTrouble(error)}`);
  }
  const json = parseStrictJson(text);
  if (!json.ok) throw usageError(`--output-schema ${path} is not JSON: ${json.why}`);
  const read = readStrictly(OutputSchema, json.value);
  if (!read.ok) throw usageError(`--output-schema ${path}: ${problemSentences(read.problems)[0]}`);
  return read.data;
}
