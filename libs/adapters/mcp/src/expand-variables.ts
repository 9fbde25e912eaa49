/** `${VAR}` and `${VAR:-default}` in the values of a server's `env` and `headers`. */
import { VARIABLE_REFERENCE } from '@coxswain/protocol';

/** The host variables that can be expanded: names and values. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>;

/** A variable is not set. The message names the variable and its field, and contains no values. */
export class MissingVariableError extends Error {
  override readonly name = 'MissingVariableError';
}

/**
 * Expands host variables in the values of a record. Throws {@link MissingVariableError}.
 * @param where the name of the record, for the message.
 * @param used receives the expanded variables with their values, without surrounding space: a header is sent without it.
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
        // The environment of the process inherits members such as `constructor`.
        const found = Object.hasOwn(host, name) ? host[name] : undefined;
        // As in a shell, the default of `:-` also replaces an empty value.
        if (fallback !== undefined && (found === undefined || found === '')) return fallback;
        if (found === undefined) {
          throw new MissingVariableError(`${where}.${key} needs the environment variable ${name}, which is not set`);
        }
        used.set(name, found.trim());
        return found;
      }),
    ]),
  );
}

/**
 * Redacts expanded values in a text, as they are and as in JSON: most of them are keys, and messages are recorded in
 * journals. Values of less than 6 characters are kept.
 */
export function withoutValues(text: string, used: ReadonlyMap<string, string>): string {
  let clean = text;
  // Also as part of JSON, in which a key of several lines has `\n`.
  const forms = [...used].flatMap(([name, value]) =>
    [value, JSON.stringify(value).slice(1, -1)].map((form) => [name, form] as const),
  );
  // The longest first: a URL with a password may contain the value of another variable, and would not be found without it.
  for (const [name, value] of forms.sort(([, one], [, other]) => other.length - one.length)) {
    // A short value such as `1` or `true` is not a secret, and occurs in ordinary text.
    if (value.length >= SECRET_MIN_CHARS) clean = clean.replaceAll(value, `[${name}]`);
  }
  return clean;
}

const SECRET_MIN_CHARS = 6;
