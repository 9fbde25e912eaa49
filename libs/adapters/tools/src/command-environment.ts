/** The environment variables of commands. */
import { globMatches } from '@coxswain/protocol';

/** The variables with which a command finds its programs, its home and its language. */
const PASSED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TMPDIR', 'TEMP', 'TMP'];

const SECRET_NAME =
  /(^|_)(KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASS|PASSWD|PASSWORD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|DSN)(_|$)|APIKEY|ACCESSKEY|AUTHTOKEN/i;
const SECRET_IN_URL = /[a-z][a-z0-9+.-]{0,30}:\/\/[^/\s:@]*:[^/\s@]+@/i;

/**
 * Builds a command's environment: the variables that every command needs, the host's variables that `inherit` names,
 * and `extra`. A variable that looks like a secret needs its exact name in `inherit`, or a value in `extra`. A glob
 * such as `MY_*` does not include it.
 */
export function commandEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  inherit: readonly string[],
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const globs = [...PASSED, ...inherit];
  // Models do not need colours and cursor movements.
  const made: Record<string, string> = { TERM: 'dumb' };
  for (const [name, value] of Object.entries(host)) {
    if (value === undefined) continue;
    const spelledOut = inherit.includes(name);
    if (spelledOut || (globs.some((glob) => globMatches(glob, name)) && !looksSecret(name, value))) made[name] = value;
  }
  return { ...made, ...extra };
}

/** Whether a variable seems to contain a key, a password or a token. */
export function looksSecret(name: string, value: string): boolean {
  return SECRET_NAME.test(name) || SECRET_IN_URL.test(value);
}
