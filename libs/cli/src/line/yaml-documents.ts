/**
 * Converts JSON lines into YAML. A separate module, imported only for `--output yaml`, because the package is large.
 */
// A static import: in the bundle a dynamic import of this CommonJS package has no named exports.
import { stringify } from 'yaml';

/** Converts each JSON line into one YAML document. @throws SyntaxError if a line is not JSON. */
export function yamlDocuments(lines: string): string {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `---\n${stringify(JSON.parse(line))}`)
    .join('');
}
