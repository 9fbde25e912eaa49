/**
 * Secrets that a request would put into a journal: credentials in a URL, literal keys in headers and environment variables of
 * MCP servers. Journals and exports keep what a request says, so it has to name a variable of the host instead.
 */

import type { McpServer } from '../personas/persona.ts';
import { cutText } from '../wire/unicode-text.ts';
import type { CommandProblem } from './commands.ts';
import { hasSecretForm } from './redact-args.ts';
import { namesIn } from './request-names.ts';

/** Names of headers, variables and query parameters whose values are credentials. */
const CREDENTIAL_NAME =
  /authorization|authentication|cookie|token|secret|key|passw|passphrase|credential|signature|(^|[-_])(auth|pat|pwd|pass|sig|jwt)([-_]|$)/i;
const REFERENCE = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/g;
/** What may stand next to a reference: an authentication scheme, a cookie's name. */
const AROUND_REFERENCE = /^[A-Za-z _=;:-]{0,16}$/;
// Only the end of the scheme: a search for all of it takes quadratic time on a long word.
const USER_INFO_IN_TEXT = /[a-z0-9+.-]:\/\/[^/?#\s]*@/i;

/** Whether the value of a header or variable of this name is a credential. */
export function isCredentialName(name: string): boolean {
  return CREDENTIAL_NAME.test(name);
}

/** Whether a credential's value is a reference to a variable, such as `Bearer ${TOKEN}`, and holds no literal secret. */
export function isReference(value: string): boolean {
  const rest = value.replace(REFERENCE, '');
  return value.trim() === '' || (rest !== value && AROUND_REFERENCE.test(rest));
}

/**
 * The first literal secret of a `start` or `prompt` that has passed its schema; null if there is none. The message names the
 * field and never quotes the value.
 */
export function secretProblem(verb: string, body: object): CommandProblem | null {
  for (const named of namesIn(verb, body)) {
    if (named.section === 'origins') {
      const what = secretInUrl(named.url);
      if (what !== null)
        return refuse(named.field, `the address has ${what}`, 'let the host hold the key of the provider');
    }
    if (named.section === 'models') {
      const member = secretInOptions(named.options, 'provider_options');
      if (member !== null)
        return refuse(
          `${named.field}.${member}`,
          'the value is a literal credential',
          'let the host hold the key of the provider',
        );
    }
    if (named.section !== 'mcp_servers') continue;
    const found = secretOfServer(named.server);
    if (found) return refuse(`${named.field}.${found.member}`, found.what, found.instead);
  }
  return null;
}

/** Narrower than {@link CREDENTIAL_NAME}: options have names such as `promptCacheKey` and `maxTokens`. */
const CREDENTIAL_OPTION =
  /authorization|passw|passphrase|secret|credential|api[-_]?key|(access|auth|bearer|refresh)[-_]?token/i;

/** The path of the first literal credential among a provider's options, such as the token of an MCP server that it asks; or null. */
function secretInOptions(value: unknown, at: string, name = ''): string | null {
  if (typeof value === 'string')
    return (value !== '' && CREDENTIAL_OPTION.test(name)) || USER_INFO_IN_TEXT.test(value) || hasSecretForm(value)
      ? at
      : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [member, inner] of Object.entries(value)) {
    const found = secretInOptions(inner, `${at}.${member}`, Array.isArray(value) ? name : member);
    if (found !== null) return found;
  }
  return null;
}

/** Why an address must not be kept in a journal, as in `a user name or password`; null if it may be. */
export function secretInUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'a user name or password';
  if ([...url.searchParams.keys()].some(isCredentialName)) return 'a key in its query';
  // A fragment is not sent, but a journal keeps it.
  const fragment = new URLSearchParams(url.hash.slice(1));
  return [...fragment.keys()].some(isCredentialName) ? 'a key in its fragment' : null;
}

interface FoundSecret {
  readonly member: string;
  readonly what: string;
  readonly instead: string;
}

const BY_VARIABLE = `write \${NAME} and set that variable in the environment of the host`;

function secretOfServer(server: McpServer): FoundSecret | null {
  if ('url' in server) {
    const what = secretInUrl(server.url);
    const instead = `send it in a header, as \${NAME}`;
    if (what !== null) return { member: 'url', what: `the address has ${what}`, instead };
    return secretIn('headers', server.headers);
  }
  return secretIn('env', server.env);
}

function secretIn(member: 'headers' | 'env', values: Readonly<Record<string, string>> = {}): FoundSecret | null {
  for (const [name, value] of Object.entries(values)) {
    const isSecret =
      (isCredentialName(name) && !isReference(value)) || USER_INFO_IN_TEXT.test(value) || hasSecretForm(value);
    if (isSecret)
      return { member: `${member}.${name}`, what: 'the value is a literal credential', instead: BY_VARIABLE };
  }
  return null;
}

function refuse(field: string, what: string, instead: string): CommandProblem {
  const shown = cutText(field, 256);
  const message = `${shown}: ${what}, which the journal and its exports would keep; ${instead}`;
  return { code: 'secret_in_request', message, field: shown };
}
