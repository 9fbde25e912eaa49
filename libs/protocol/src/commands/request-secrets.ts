/**
 * Secrets in requests: credentials in a URL, literal keys in headers and environment variables of MCP servers and in
 * options of providers. Journals and exports would contain them. So a request must reference a variable of the host
 * instead, or the host holds the key.
 */

import type { McpServer } from '../personas/persona.ts';
import { cutText } from '../wire/unicode-text.ts';
import type { CommandProblem } from './commands.ts';
import { hasSecretForm } from './redact-args.ts';
import { namesIn } from './request-names.ts';

/** Names of headers, variables, and parameters of a URL that indicate a credential. */
const CREDENTIAL_NAME =
  /authorization|authentication|cookie|token|secret|key|passw|passphrase|credential|signature|(^|[-_])(auth|pat|pwd|pass|sig|jwt)([-_]|$)/i;
const REFERENCE = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/g;
/** Allowed text around a reference: an authentication scheme, or the name of a cookie. */
const AROUND_REFERENCE = /^[A-Za-z _=;:-]{0,16}$/;
// Only the end of the scheme: a search for a whole scheme takes quadratic time on a long word.
const USER_INFO_IN_TEXT = /[a-z0-9+.-]:\/\/[^/?#\s]*@/i;

/** Whether the name of a header, a variable or a parameter of a URL indicates a credential. */
export function isCredentialName(name: string): boolean {
  return CREDENTIAL_NAME.test(name);
}

/** Whether a credential is empty, or a reference to a variable, such as `Bearer ${TOKEN}`, without a literal secret. */
export function isReference(value: string): boolean {
  const rest = value.replace(REFERENCE, '');
  return value.trim() === '' || (rest !== value && AROUND_REFERENCE.test(rest));
}

/**
 * The problem with the first literal secret in a `start` or `prompt`; null without one, and for other verbs. Checked
 * are addresses, options of providers, and headers and variables of MCP servers. The body has passed its schema. The
 * message names the field and never quotes the value.
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

/**
 * Names of options with credentials. Narrower than {@link CREDENTIAL_NAME}: options have names such as `promptCacheKey`
 * and `maxTokens`.
 */
const CREDENTIAL_OPTION =
  /authorization|passw|passphrase|secret|credential|api[-_]?key|(access|auth|bearer|refresh)[-_]?token/i;

/** The path of the first literal credential in a provider's options, such as the token of an MCP server; or null. */
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

/** The secret in an address, for example `a user name or password`; null if there is none, or the text is not a URL. */
export function secretInUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'a user name or password';
  if ([...url.searchParams.keys()].some(isCredentialName)) return 'a key in its query';
  // Clients do not send a fragment, but a journal would contain it.
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
