/**
 * The file of contexts: named bus addresses, each optionally with the path of a key file and a tenant. It contains no
 * secrets.
 */
import * as z from 'zod';
import { readNatsAddress } from './nats-address.ts';

/** Names of contexts: 1 to 64 of A-Z a-z 0-9 _ -, and not `none`. */
export const CONTEXT_NAME = /^(?!none$)[A-Za-z0-9_-]{1,64}$/;
/** Maximum of contexts in the file. */
export const CONTEXTS_MAX = 100;

/** Whether the addresses may be stored: comma-separated addresses of one bus, without credentials. */
function areContextAddresses(addresses: string): boolean {
  return addresses.split(',').every((one) => {
    const read = readNatsAddress(one.trim());
    return read.ok && read.address.username === undefined && read.address.password === undefined;
  });
}

/** The content of the file: all contexts by name, and the current one. */
export const ContextsFile = z.strictObject({
  current: z.string().regex(CONTEXT_NAME).nullable(),
  contexts: z.record(
    z.string().regex(CONTEXT_NAME),
    z.strictObject({
      /** Addresses of the servers of one bus, comma-separated, without credentials. */
      nats: z
        .string()
        .refine(areContextAddresses, 'must be nats://host:port or tls://host:port, without token or password'),
      /** Absolute path of a key file. */
      nkey: z.string().min(1).optional(),
      tenant: z.string().min(1).optional(),
    }),
  ),
});
export type ContextsFile = z.infer<typeof ContextsFile>;
