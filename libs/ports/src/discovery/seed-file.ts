/**
 * Seed files: the secret of one user of the bus. Comments in the file have the settings of its connection. `cox admin
 * auth` writes seed files.
 */
import { readFile } from 'node:fs/promises';
import { CoxswainError, ID_PATTERN, isInboxSubject } from '@coxswain/protocol';

/** Credentials of a connection, instead of a token. */
export interface SeedCredentials {
  /** `SU…` */
  readonly seed: string;
  /** The prefix of the subjects on which the user may receive replies. */
  readonly inboxPrefix: string | undefined;
  /** The user's tenant; undefined for a user of the bus itself. */
  readonly tenant: string | undefined;
}

/** A seed file cannot be used. */
export class SeedFileError extends CoxswainError {
  constructor(message: string, options?: ErrorOptions) {
    super('seed_file_unusable', message, options);
  }
}

/**
 * A base32 text of two prefix bytes, 32 seed bytes and two checksum bytes
 * (https://docs.nats.io/running-a-nats-service/nats_admin/security/nkeys_auth). The connection verifies the checksum.
 */
const USER_SEED = /^SU[A-Z2-7]{56}$/;

/** Reads a seed file. @throws SeedFileError, which names the file and does not quote its content. */
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
