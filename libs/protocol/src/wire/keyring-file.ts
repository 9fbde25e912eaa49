/** `keys.json`: which keys there are of a bus, as `cox admin auth` writes them down and reads them again. It holds no secrets. */
import * as z from 'zod';
import { BusToolName } from '../tools/tool-services.ts';
import { ID_PATTERN, TenantId } from './ids.ts';

/** Names of keys are as long as those of tool workers. */
const NAME_MAX = 32;

/** What a further key of a role is called. */
export const KeyName = z
  .string()
  .regex(ID_PATTERN)
  .max(NAME_MAX, { error: `must be 1 to ${NAME_MAX} characters of A-Z a-z 0-9 _ -` });

/** One key. The reader of the file validates its role. */
export const KeyEntry = z.strictObject({
  role: z.string(),
  /** Of a tenant's role. */
  tenant: TenantId.optional(),
  /** Of each further key of a role; the first has none. */
  name: KeyName.optional(),
  /** Of the role `tools`: the worker whose own key it is. */
  worker: KeyName.optional(),
  /** Below the folder. */
  file: z.string(),
  public_key: z
    .string()
    .regex(/^U[A-Z2-7]{55}$/, { error: 'must be the public key of a user: U and 55 more characters' }),
});
/** See {@link KeyEntry}. */
export type KeyEntry = z.infer<typeof KeyEntry>;

/** The file. */
export const KeyringFile = z.strictObject({
  v: z.literal(1),
  tenants: z.array(TenantId).min(1),
  gateway_approves: z.boolean(),
  workers: z.array(z.strictObject({ tenant: TenantId, name: KeyName, tools: z.array(BusToolName) })),
  keys: z.array(KeyEntry),
});
/** See {@link KeyringFile}. */
export type KeyringFile = z.infer<typeof KeyringFile>;
