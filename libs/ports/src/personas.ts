/** The persona port. */
import type { Persona } from '@coxswain/protocol';

/** Where personas are found by name. */
export interface Personas {
  /** The newest definition of this name, or null. */
  find(name: string): Promise<Persona | null>;
  /** All names, for error messages and lists. */
  names(): Promise<readonly string[]>;
}
