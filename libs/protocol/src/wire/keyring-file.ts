/**
 * `keys.json`: the list of keys of a bus, written and read by `cox admin auth`. It contains no secrets.
 */
import * as z from 'zod';
import { BusToolName } from '../tools/tool-services.ts';
import { ID_PATTERN, TenantId } from './ids.ts';

const NAME_MAX = 32;

/** The name of a tool worker, or of a further key of a role. */
export const KeyName = z
  .string()
  .regex(ID_PATTERN)
  .max(NAME_MAX, { error: `must be 1 to ${NAME_MAX} characters of A-Z a-z 0-9 _ -` });

/** One key. The reader of the file validates its role. */
export const KeyEntry = z.strictObject({
  role: z.string(),
  /** Only for roles of a tenant. */
  tenant: TenantId.optional(),
  /** Only for further keys of a role; the first key has no name. */
  name: KeyName.optional(),
  /** Only for the role `tools`: the worker that owns the key. */
  worker: KeyName.optional(),
  /** Relative to the folder of `keys.json`. */
  file: z.string(),
  public_key: z
    .string()
    .regex(/^U[A-Z2-7]{55}$/, { error: 'must be the public key of a user: U and 55 more characters' }),
});
export type KeyEntry = z.infer<typeof KeyEntry>;

/** The content of the file. */
export const KeyringFile = z.strictObject({
  v: z.literal(1),
  tenants: z.array(TenantId).min(1),
  gateway_approves: z.boolean(),
  workers: z.array(z.strictObject({ tenant: TenantId, name: KeyName, tools: z.array(BusToolName) })),
  keys: z.array(KeyEntry),
});
export type KeyringFile = z.infer<typeof KeyringFile>;
