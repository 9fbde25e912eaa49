/** Files of seeds: the secret of one user of the bus, and in comments what its connection needs. `cox admin auth` writes them. */
import { readFile } from 'node:fs/promises';
import { CoxswainError, ID_PATTERN, isInboxSubject } from '@coxswain/protocol';

/** What a connection is made with, in place of a token. */
export interface SeedCredentials {
  /** `SU…` */
  readonly seed: string;
  /** Where the user's answers may go. */
  readonly inboxPrefix: string | undefined;
  /** Whose user it is; undefined for the bus's own. */
  readonly tenant: string | undefined;
}

/** A file of a seed cannot be used. */
export class SeedFileError extends CoxswainError {
  constructor(message: string, options?: ErrorOptions) {
    super('seed_file_unusable', message, options);
  }
}

/**
 * Two bytes of prefix, 32 of the seed and two of a checksum in base32 (https://docs.nats.io/running-a-nats-service/nats_admin/security/nkeys_auth).
 * The connection checks the checksum.
 */
const USER_SEED = /^SU[A-Z2-7]{56}$/;

/** Reads one. @throws SeedFileError, which names the file and never what is in it. */
export async function readSeedFile(path: string): Promise<SeedCredentials> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new SeedFileError(`the seed file ${path} cannot be read: ${codeOf(error)}`);
  }
  const seed = text
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '' && !line.startsWith('#'));
  if (seed === undefined || !USER_SEED.test(seed)) throw new SeedFileError(`${path} contains no user seed (SU…)`);
  const inboxPrefix = noted(text, 'inbox-prefix');
  const tenant = noted(text, 'tenant');
  if (inboxPrefix !== undefined && !isInboxSubject(`${inboxPrefix}.x`))
    throw new SeedFileError(`${path} names an invalid inbox-prefix: _INBOX or _INBOX.<name>`);
  if (tenant !== undefined && !ID_PATTERN.test(tenant)) throw new SeedFileError(`${path} names an invalid tenant`);
  return { seed, inboxPrefix, tenant };
}

function noted(text: string, name: string): string | undefined {
  return new RegExp(`^# *${name}: *(\\S+) *$`, 'm').exec(text)?.[1];
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}
