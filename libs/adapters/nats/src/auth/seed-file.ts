/**
 * Makes files of seeds, which `@coxswain/ports/discovery` reads: the secret of one user of the bus, and in comments what its
 * connection needs. Other tools of NATS read the same file, as they look for the seed alone.
 */
import type { SeedCredentials } from '@coxswain/ports/discovery';
import { nkeys } from '@nats-io/nats-core';

/** A new key: the seed, which is secret, and the public key, which the server is told. */
export function newKey(): { readonly seed: string; readonly publicKey: string } {
  const pair = nkeys.createUser();
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() };
}

/** The text of a file for a user. */
export function seedFile(role: string, { seed, inboxPrefix, tenant }: SeedCredentials): string {
  return [
    `# Coxswain: the key of ${role}${tenant === undefined ? '' : ` of the tenant ${tenant}`}. Keep it secret: its owner has the permissions of the role.`,
    `# inbox-prefix: ${inboxPrefix ?? '_INBOX'}`,
    ...(tenant === undefined ? [] : [`# tenant: ${tenant}`]),
    seed,
    '',
  ].join('\n');
}
