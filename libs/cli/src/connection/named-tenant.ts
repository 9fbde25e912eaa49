/** The tenant of a command. */
import { cutGraphemes, DEFAULT_TENANT, TenantId } from '@coxswain/protocol';
import { type Flags, usageError } from '../line/mod.ts';
import type { BusAddress } from './find-bus.ts';

/**
 * The tenant: `--tenant`, else the one of the context, else the one of the key, else `default`. A key without a tenant,
 * such as the admin's, works for every tenant.
 * @throws CliError with exit code 2 for an invalid name, and for a tenant that is not the key's.
 */
export function namedTenant(
  flags: Flags,
  address: Pick<BusAddress, 'credentials' | 'context'> | null | undefined,
): TenantId {
  const ofKey = address?.credentials?.tenant;
  const named = flags.text('tenant') ?? address?.context?.tenant;
  if (named === undefined) return TenantId.parse(ofKey ?? DEFAULT_TENANT);
  const tenant = TenantId.safeParse(named);
  if (!tenant.success)
    throw usageError(`--tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -, not "${cutGraphemes(named, 80)}"`);
  if (ofKey !== undefined && ofKey !== named)
    throw usageError(`--tenant ${named}: the key is one of the tenant ${ofKey}`);
  return tenant.data;
}
