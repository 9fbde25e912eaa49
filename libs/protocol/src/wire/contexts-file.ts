/** The file of contexts: named addresses of a bus, with a key file and a tenant. It holds paths of key files and no secrets. */
import * as z from 'zod';

/** Names of contexts: 1 to 64 of A-Z a-z 0-9 _ -, and not `none`. */
export const CONTEXT_NAME = /^(?!none$)[A-Za-z0-9_-]{1,64}$/;
/** So many contexts fit in the file. */
export const CONTEXTS_MAX = 100;

/** Whether an address may be stored: one server over NATS or TLS. What logs in belongs in a key file. */
function isContextAddress(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && /^(nats|tls):$/.test(url.protocol) && url.username === '' && url.password === '';
}

/** The content of the file: all contexts by name, and the one in use. */
export const ContextsFile = z.strictObject({
  current: z.string().regex(CONTEXT_NAME).nullable(),
  contexts: z.record(
    z.string().regex(CONTEXT_NAME),
    z.strictObject({
      /** Address without credentials. */
      nats: z
        .string()
        .refine(isContextAddress, 'must be nats://host:port or tls://host:port, without token or password'),
      /** Absolute path of a key file. */
      nkey: z.string().min(1).optional(),
      tenant: z.string().min(1).optional(),
    }),
  ),
});
/** See the schema. */
export type ContextsFile = z.infer<typeof ContextsFile>;
