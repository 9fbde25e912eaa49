/** The environment variables that a command is given. */
import { globMatches } from '@coxswain/protocol';

/** What a command needs to find its programs, its home and its language. */
const PASSED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TMPDIR', 'TEMP', 'TMP'];

const SECRET_NAME =
  /(^|_)(KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASS|PASSWD|PASSWORD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|DSN)(_|$)|APIKEY|ACCESSKEY|AUTHTOKEN/i;
const SECRET_IN_URL = /[a-z][a-z0-9+.-]{0,30}:\/\/[^/\s:@]*:[^/\s@]+@/i;

/**
 * Makes a command's environment: the few variables that every command needs, those of the host whose names `inherit`
 * gives, and `extra`. A variable that looks like a secret is passed only if `inherit` spells its name out or `extra`
 * sets it: a glob such as `MY_*` shall not carry a key along.
 */
export function commandEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  inherit: readonly string[],
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const globs = [...PASSED, ...inherit];
  // Colours and cursor movements are noise to a model.
  const made: Record<string, string> = { TERM: 'dumb' };
  for (const [name, value] of Object.entries(host)) {
    if (value === undefined) continue;
    const spelledOut = inherit.includes(name);
    if (spelledOut || (globs.some((glob) => globMatches(glob, name)) && !looksSecret(name, value))) made[name] = value;
  }
  return { ...made, ...extra };
}

/** Whether a variable looks like one that holds a key, a password or a token. */
export function looksSecret(name: string, value: string): boolean {
  return SECRET_NAME.test(name) || SECRET_IN_URL.test(value);
}
