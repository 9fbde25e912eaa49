/** `${VAR}` and `${VAR:-default}` in the values of a server's `env` and `headers`. */

/** What may be expanded: the names of what is set, with their values. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

/** A variable that is not set. Its message names it and where it stands, and no value of any other. */
export class MissingVariableError extends Error {
  override readonly name = 'MissingVariableError';
}

/** Fills host variables into the values of a record. Throws {@link MissingVariableError}. `where` is for its message. */
export function expandVariables(
  values: Readonly<Record<string, string>>,
  host: HostEnvironment,
  where: string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      value.replace(VARIABLE, (_whole, name: string, fallback: string | undefined) => {
        const found = host[name];
        // As in a shell, `:-` stands in for an empty variable too.
        if (fallback !== undefined) return found === undefined || found === '' ? fallback : found;
        if (found === undefined) {
          throw new MissingVariableError(`${where}.${key} needs the environment variable ${name}, which is not set`);
        }
        return found;
      }),
    ]),
  );
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
