/** JSON lines as YAML. A module of its own, loaded only for `--output yaml`: the package is large. */
// A static import: in the bundle a dynamic import of this CommonJS package has no named exports.
import { stringify } from 'yaml';

/** Writes each JSON line as one YAML document. @throws SyntaxError where a line is not JSON. */
export function yamlDocuments(lines: string): string {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `---\n${stringify(JSON.parse(line))}`)
    .join('');
}
