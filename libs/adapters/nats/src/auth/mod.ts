/** Authorization on NATS: roles, the server's configuration, keys. */

export { readSeedFile, type SeedCredentials, SeedFileError } from '@coxswain/ports/discovery';
export { type AuthFile, authFiles, type KeyFile, newKeyFile, ringFiles } from './auth-files.ts';
export {
  KEYS_PER_ROLE_MAX,
  type KeyPlace,
  type Keyring,
  KeyringError,
  keyAt,
  keyPlaceFrom,
  keyringFrom,
  placeText,
  type RingKey,
  withKey,
  withoutKey,
} from './keyring.ts';
export { TENANTS_MAX, withoutTenant, withTenant } from './ring-tenants.ts';
export {
  type AuthSettings,
  passagesOf,
  ROLES,
  type RoleRights,
  SYSTEM_ROLES,
  type SystemRole,
  systemRights,
  TENANT_ROLES,
  type TenantRole,
  tenantRights,
  verbsOf,
} from './roles.ts';
export { newKey, seedFile } from './seed-file.ts';
export { STREAMS_ACCOUNT, serverAccounts, tenantAccount } from './server-accounts.ts';
export { type ToolWorkerKey, toolWorkerProblem } from './tool-workers.ts';
