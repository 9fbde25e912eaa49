/** `${VAR}` and `${VAR:-default}` in the values of a server's `env` and `headers`. */
import { VARIABLE_REFERENCE } from '@coxswain/protocol';

/** What may be expanded: the names of what is set, with their values. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

/** A variable that is not set. Its message names it and where it stands, and no value of any other. */
export class MissingVariableError extends Error {
  override readonly name = 'MissingVariableError';
}

/**
 * Fills host variables into the values of a record. Throws {@link MissingVariableError}. `where` is for its message;
 * what was filled in is added to `used`, by variable.
 */
export function expandVariables(
  values: Readonly<Record<string, string>>,
  host: HostEnvironment,
  where: string,
  used: Map<string, string>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      value.replace(VARIABLE_REFERENCE, (_whole, name: string, fallback: string | undefined) => {
        const found = host[name];
        // As in a shell, `:-` stands in for an empty variable too.
        if (fallback !== undefined && (found === undefined || found === '')) return fallback;
        if (found === undefined) {
          throw new MissingVariableError(`${where}.${key} needs the environment variable ${name}, which is not set`);
        }
        used.set(name, found);
        return found;
      }),
    ]),
  );
}

/** A text in which no value stands that was filled in: such values are mostly keys, and messages go into journals. */
export function withoutValues(text: string, used: ReadonlyMap<string, string>): string {
  let clean = text;
  for (const [name, value] of used) {
    // A value as short as `1` or `true` is no secret, and stands everywhere.
    if (value.length >= SECRET_MIN_CHARS) clean = clean.replaceAll(value, `[${name}]`);
  }
  return clean;
}

const SECRET_MIN_CHARS = 6;
