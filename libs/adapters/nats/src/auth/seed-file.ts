/**
 * Creates seed files, which `@coxswain/ports/discovery` reads. A file contains the secret seed of one NATS user, and
 * its connection settings in comments. Other NATS tools also read it, because they look only for the seed.
 */
import type { SeedCredentials } from '@coxswain/ports/discovery';
import { nkeys } from '@nats-io/nats-core';

/** Creates a new key: the secret seed, and the public key for the server's configuration. */
export function newKey(): { readonly seed: string; readonly publicKey: string } {
  const pair = nkeys.createUser();
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() };
}

/**
 * The text of a seed file.
 * @param role the owner of the key, for the comment in the file.
 */
export function seedFile(role: string, { seed, inboxPrefix, tenant }: SeedCredentials): string {
  return [
    `# Coxswain: the key of ${role}${tenant === undefined ? '' : ` of the tenant ${tenant}`}. Keep it secret: its owner has the permissions of the role.`,
    `# inbox-prefix: ${inboxPrefix ?? '_INBOX'}`,
    ...(tenant === undefined ? [] : [`# tenant: ${tenant}`]),
    seed,
    '',
  ].join('\n');
}
