/** What `cox acp` writes to standard error. Standard output belongs to the protocol. */
import { printable } from '@coxswain/client';

/**
 * Writes a diagnostic. Its text may come from an editor, a model or a tool: control characters are removed, and further
 * lines are indented, so that the text can neither drive the terminal nor pass for another diagnostic.
 */
export function writeDiagnostic(message: string): void {
  process.stderr.write(`cox acp: ${printable(message).replaceAll('\n', '\n  ')}\n`);
}
