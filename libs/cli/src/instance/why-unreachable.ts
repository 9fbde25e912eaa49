/** Why a bus could not be joined, in words, with what to do. */

/** What was tried, as a person named it. */
export interface TriedBus {
  /** Whose address it is: `--nats`, `NATS_URL`, or the state folder's instance. */
  readonly source: string;
  /** As it was given; credentials in it are not shown. */
  readonly servers: string;
}

/**
 * What the system and the library of NATS say in names of system calls, said in words.
 * @returns what has happened, and behind a semicolon what to do.
 */
export function whyUnreachable(error: unknown, { source, servers }: TriedBus): string {
  const said = chainOf(error);
  const meant = source === 'state-dir' ? 'the running instance' : source;
  const found = REASONS.find(({ when }) => said.some((text) => when.test(text)));
  if (!found) return `${error instanceof Error ? error.message : String(error)}; cox doctor tells more`;
  const host = said.map((text) => /\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/.exec(text)?.[1]).find(Boolean);
  return found.words(host ?? withoutCredentials(servers), meant);
}

interface Reason {
  readonly when: RegExp;
  words(at: string, meant: string): string;
}

/** The first that fits. */
const REASONS: readonly Reason[] = [
  { when: /\bENOTFOUND\b/, words: (at, meant) => `there is no machine named ${at}; check the name in ${meant}` },
  {
    when: /\bEAI_AGAIN\b/,
    words: (at) =>
      `nobody could be asked which machine ${at} is; check the network and its name servers, and try again`,
  },
  {
    when: /\bECONNREFUSED\b|connection refused/i,
    words: (at, meant) =>
      `nothing listens at ${at} (connection refused); start a NATS server there, or check the port in ${meant}. cox up starts one of your own`,
  },
  {
    when: /authorization violation|authentication|nkey|permissions violation/i,
    words: (at, meant) =>
      `the server at ${at} does not let this user in; check the credentials: the token in ${meant}, NATS_NKEY, or the key of cox admin auth`,
  },
  {
    when: /\btls\b|\bssl\b|certificate|\bCERT_|\bself[- ]signed\b|EPROTO/i,
    words: (at, meant) =>
      `no encrypted connection to ${at} came about; see whether it speaks TLS (tls:// or nats:// in ${meant}) and whether this ` +
      'machine trusts its certificate (NODE_EXTRA_CA_CERTS names a file of those to trust)',
  },
  {
    when: /\bETIMEDOUT\b|\btimeout\b|timed out/i,
    words: (at, meant) =>
      `${at} has not answered in time; check the address in ${meant}, the network and its firewalls`,
  },
  {
    when: /unexpected response from server/i,
    words: (at, meant) => `what listens at ${at} is no NATS server; check the address and the port in ${meant}`,
  },
  {
    when: /\bE(?:HOST|NET)UNREACH\b/,
    words: (at, meant) => `no way leads to ${at}; check the address in ${meant} and the network`,
  },
];

/** What stands behind the last `@`: a password may have any other character in it. */
function withoutCredentials(servers: string): string {
  return servers.slice(servers.lastIndexOf('@') + 1);
}

/** How many causes are followed: a chain may be a ring. */
const CAUSES_MAX = 8;

/** What an error and its causes say, with their names and codes. */
function chainOf(error: unknown): string[] {
  const said: string[] = [];
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth += 1) {
    said.push(`${at.name} ${String((at as NodeJS.ErrnoException).code ?? '')} ${at.message}`);
    at = at.cause;
  }
  return said;
}
