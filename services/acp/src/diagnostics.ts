/** Diagnostics of `cox acp` on standard error. Standard output carries only protocol messages. */
import { printable } from '@coxswain/client';

/**
 * Writes a diagnostic. Its text may come from an editor, a model or a tool. Control characters are removed and further
 * lines are indented, so that the text can neither control the terminal nor imitate another diagnostic.
 */
export function writeDiagnostic(message: string): void {
  process.stderr.write(`cox acp: ${printable(message).replaceAll('\n', '\n  ')}\n`);
}
