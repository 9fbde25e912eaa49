/**
 * Files of seeds: the secret of one user of the bus, and in comments what its connection has to know. Other tools of NATS read
 * the same file, as they look for the seed alone.
 */
import { readFile } from 'node:fs/promises';
import { ID_PATTERN, isInboxSubject } from '@coxswain/protocol';
import { nkeys } from '@nats-io/nats-core';

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
export class SeedFileError extends Error {
  override readonly name = 'SeedFileError';
  readonly code = 'seed_file_unusable';
}

/** A new key: the seed, which is secret, and the public key, which the server is told. */
export function newKey(): { readonly seed: string; readonly publicKey: string } {
  const pair = nkeys.createUser();
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() };
}

/** The text of a file for a user. */
export function seedFile(role: string, { seed, inboxPrefix, tenant }: SeedCredentials): string {
  return [
    `# Coxswain: the key of ${role}${tenant === undefined ? '' : ` of the tenant ${tenant}`}. Whoever has it is let in.`,
    `# inbox-prefix: ${inboxPrefix ?? '_INBOX'}`,
    ...(tenant === undefined ? [] : [`# tenant: ${tenant}`]),
    seed,
    '',
  ].join('\n');
}

/** Reads one. @throws SeedFileError, which names the file and never what is in it. */
export async function readSeedFile(path: string): Promise<SeedCredentials> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new SeedFileError(`the file of the seed, ${path}, cannot be read: ${codeOf(error)}`);
  }
  const seed = text
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '' && !line.startsWith('#'));
  if (seed === undefined || !isUserSeed(seed)) throw new SeedFileError(`${path} holds no seed of a user (SU…)`);
  const inboxPrefix = noted(text, 'inbox-prefix');
  const tenant = noted(text, 'tenant');
  if (inboxPrefix !== undefined && !isInboxSubject(`${inboxPrefix}.x`))
    throw new SeedFileError(`${path} names an inbox-prefix that is none: _INBOX or _INBOX.<name>`);
  if (tenant !== undefined && !ID_PATTERN.test(tenant)) throw new SeedFileError(`${path} names a tenant that is none`);
  return { seed, inboxPrefix, tenant };
}

function isUserSeed(text: string): boolean {
  try {
    return nkeys.fromSeed(new TextEncoder().encode(text)).getPublicKey().startsWith('U');
  } catch {
    // Too short, another alphabet, a wrong sum.
    return false;
  }
}

function noted(text: string, name: string): string | undefined {
  return new RegExp(`^# *${name}: *(\\S+) *$`, 'm').exec(text)?.[1];
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}
