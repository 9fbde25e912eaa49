/** Explains why a bus is unreachable: the standard diagnosis with its code, and a remedy. */

/** The address that was tried, and its source. */
export interface TriedBus {
  /** The source of the address: `--nats`, `NATS_URL`, or `state-dir` for the instance of the state directory. */
  readonly source: string;
  /** The address as given. The message does not contain its credentials. */
  readonly servers: string;
}

/**
 * Explains a failed connection. The message keeps the code of the operating system, such as `ECONNREFUSED`.
 * @returns the reason and, after a semicolon, the remedy.
 */
export function whyUnreachable(error: unknown, { source, servers }: TriedBus): string {
  const lines = chainOf(error);
  const meant = source === 'state-dir' ? 'the running instance' : source;
  const found = REASONS.find(({ when }) => lines.some((text) => when.test(text)));
  if (!found) return `${error instanceof Error ? error.message : String(error)}; run cox doctor for more`;
  const host = lines.map((text) => /\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/.exec(text)?.[1]).find(Boolean);
  const code = lines.map((text) => SYSTEM_CODE.exec(text)?.[0]).find(Boolean);
  return found.words(host ?? withoutCredentials(servers), meant, code);
}

/** Codes of the operating system and of TLS, as people search for them. */
const SYSTEM_CODE = /\b(?:E[A-Z]{4,}|EAI_AGAIN|(?:ERR_(?:SSL|TLS)|CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)_[A-Z_]+)\b/;

interface Reason {
  readonly when: RegExp;
  words(at: string, meant: string, code: string | undefined): string;
}

/** The first matching reason applies. */
const REASONS: readonly Reason[] = [
  {
    when: /\bENOTFOUND\b/,
    words: (at, meant) => `host not found: ${at} (ENOTFOUND); check the name in ${meant}`,
  },
  {
    when: /\bEAI_AGAIN\b/,
    words: (at) =>
      `temporary failure in name resolution of ${at} (EAI_AGAIN); check the network and the DNS servers, and retry`,
  },
  {
    when: /\bECONNREFUSED\b|connection refused/i,
    words: (at, meant) =>
      `connection refused by ${at} (ECONNREFUSED); start a NATS server there, check the port in ${meant}, or ${
        meant === 'NATS_URL' ? 'unset NATS_URL to use a server on this machine' : 'start your own bus with cox up'
      }`,
  },
  {
    when: /authorization violation|authentication|nkey|permissions violation/i,
    words: (at, meant) =>
      `authentication failed at ${at} (authorization violation); check the credentials: the token in ${meant}, NATS_NKEY, or the key of cox admin auth`,
  },
  {
    when: /\btls\b|\bssl\b|certificate|\bCERT_|\bself[- ]signed\b|EPROTO/i,
    words: (at, meant, code) =>
      `TLS handshake with ${at} failed${code === undefined ? '' : ` (${code})`}; check that the server uses TLS (tls:// or nats:// in ${meant}) and that this ` +
      'machine trusts its certificate (NODE_EXTRA_CA_CERTS names a file of trusted certificates)',
  },
  {
    when: /\bETIMEDOUT\b|\btimeout\b|timed out/i,
    words: (at, meant) =>
      `connection to ${at} timed out (ETIMEDOUT); check the address in ${meant}, the network and its firewalls`,
  },
  {
    when: /unexpected response from server/i,
    words: (at, meant) => `the server at ${at} is not a NATS server; check the address and the port in ${meant}`,
  },
  {
    when: /\bE(?:HOST|NET)UNREACH\b/,
    words: (at, meant, code) => `no route to host ${at} (${code}); check the address in ${meant} and the network`,
  },
];

/** The part after the last `@`: a password may contain any other character. */
function withoutCredentials(servers: string): string {
  return servers.slice(servers.lastIndexOf('@') + 1);
}

/** The maximum number of causes: a chain of causes may be circular. */
const CAUSES_MAX = 8;

/** The names, codes and messages of an error and its causes. */
function chainOf(error: unknown): string[] {
  const lines: string[] = [];
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth += 1) {
    lines.push(`${at.name} ${String((at as NodeJS.ErrnoException).code ?? '')} ${at.message}`);
    at = at.cause;
  }
  return lines;
}
