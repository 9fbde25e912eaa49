/** Who may do what on the bus: roles, the server's configuration, keys. */
export { type AuthFile, authFiles } from './auth-files.ts';
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
export { newKey, readSeedFile, type SeedCredentials, SeedFileError, seedFile } from './seed-file.ts';
export { type KeyOf, STREAMS_ACCOUNT, serverAccounts, tenantAccount } from './server-accounts.ts';
export { type ToolWorkerKey, toolWorkerProblem } from './tool-workers.ts';
