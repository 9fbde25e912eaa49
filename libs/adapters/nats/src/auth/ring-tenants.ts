/** Adds and removes tenants of an existing keyring. A new tenant gets a key for each role. */
import type { TenantId } from '@coxswain/protocol';
import { type KeyFile, newKeyFile } from './auth-files.ts';
import { type Keyring, KeyringError, type RingKey, withKey } from './keyring.ts';
import { TENANT_ROLES } from './roles.ts';

/** Maximum number of tenants of an installation: each is an account of the NATS servers. */
export const TENANTS_MAX = 256;

/**
 * Adds a tenant.
 * @returns the new keyring, and the files of the tenant's keys.
 * @throws KeyringError if the tenant exists already.
 */
export function withTenant(ring: Keyring, tenant: TenantId): { readonly ring: Keyring; readonly files: KeyFile[] } {
  const { settings, keys } = ring;
  if (settings.tenants.includes(tenant)) throw new KeyringError('tenant_exists', `tenant ${tenant} already exists`);
  const files = TENANT_ROLES.map((role) => newKeyFile({ role, tenant }));
  let grown: Keyring = { settings: { ...settings, tenants: [...settings.tenants, tenant] }, keys };
  for (const { role, publicKey } of files) grown = withKey(grown, { role, tenant }, publicKey).ring;
  return { ring: grown, files };
}

/**
 * Removes a tenant.
 * @returns the new keyring, and the removed keys, including those of the tenant's workers.
 * @throws KeyringError if the tenant does not exist, or is the only one.
 */
export function withoutTenant(ring: Keyring, tenant: string): { readonly ring: Keyring; readonly keys: RingKey[] } {
  const { settings } = ring;
  const { tenants, workers } = settings;
  if (!tenants.includes(tenant))
    throw new KeyringError(
      'tenant_not_found',
      `tenant ${tenant} does not exist; existing tenants: ${tenants.join(', ')}`,
    );
  if (tenants.length === 1)
    throw new KeyringError('tenant_is_last', `${tenant} is the only tenant; add another one first`);
  return {
    ring: {
      settings: {
        ...settings,
        tenants: tenants.filter((one) => one !== tenant),
        workers: workers?.filter((worker) => worker.tenant !== tenant),
      },
      keys: ring.keys.filter((key) => key.tenant !== tenant),
    },
    keys: ring.keys.filter((key) => key.tenant === tenant),
  };
}
