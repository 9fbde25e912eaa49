/**
 * The keyring: settings and public keys of an installation. The server's accounts are generated from it, and adding or
 * removing a key changes it. It is stored as `keys.json` in the folder of the keys.
 */
import { type KeyEntry, KeyName, KeyringFile, problemSentences, readStrictly, TenantId } from '@coxswain/protocol';
import { type AuthSettings, SYSTEM_ROLES, type SystemRole, TENANT_ROLES, type TenantRole } from './roles.ts';

/** Maximum number of keys of one role, per tenant for the roles of a tenant. */
export const KEYS_PER_ROLE_MAX = 256;

/** One key of the keyring. */
export type RingKey = Omit<KeyEntry, 'role'> & { readonly role: SystemRole | TenantRole };

/** The settings of an installation, and its keys. */
export interface Keyring {
  readonly settings: AuthSettings;
  readonly keys: readonly RingKey[];
}

/**
 * Identifies one key: `host`, `default/operator`, an additional key of a role with `=NAME`, or the key of a worker as
 * in `default/worker=stock`.
 */
export interface KeyPlace {
  readonly role: SystemRole | TenantRole;
  readonly tenant?: string | undefined;
  readonly name?: string | undefined;
  /** The worker that the key belongs to, if it is not for all tools. Only with the role `tools`. */
  readonly worker?: string | undefined;
}

/** An operation on a keyring is impossible. The message says how to correct it. */
export class KeyringError extends Error {
  override readonly name = 'KeyringError';
  readonly code:
    | 'keyring_unreadable'
    | 'key_exists'
    | 'key_not_found'
    | 'key_is_last'
    | 'tenant_exists'
    | 'tenant_is_last'
    | 'tenant_not_found';
  constructor(code: KeyringError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** Serializes a keyring to the text of `keys.json`. */
export function keyringText({ settings, keys }: Keyring): string {
  const { tenants, gatewayApproves = false, workers = [] } = settings;
  return `${JSON.stringify({ v: 1, tenants, gateway_approves: gatewayApproves, workers, keys }, null, 2)}\n`;
}

/** Parses the text of `keys.json`. @throws KeyringError. */
export function keyringFrom(text: string): Keyring {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new KeyringError('keyring_unreadable', `keys.json is not valid JSON: ${(error as Error).message}`);
  }
  const read = readStrictly(KeyringFile, value);
  if (!read.ok)
    throw new KeyringError('keyring_unreadable', `keys.json: ${problemSentences(read.problems).join('; ')}`);
  const { tenants, gateway_approves, workers, keys } = read.data;
  const known = keys.map((key): RingKey => {
    const role = [...SYSTEM_ROLES, ...TENANT_ROLES].find((one) => one === key.role);
    if (!role) throw new KeyringError('keyring_unreadable', `keys.json: unknown role ${key.role.slice(0, 64)}`);
    return { ...key, role };
  });
  return { settings: { tenants, gatewayApproves: gateway_approves, workers }, keys: known };
}

/**
 * Parses `host`, `default/operator=alice` or `default/worker=stock`. With a single tenant, its name may be omitted.
 * @returns null if the text does not identify a key.
 */
export function keyPlaceFrom(text: string, tenants: readonly string[]): KeyPlace | null {
  const [, tenant, role = '', name] = /^(?:([^/=]+)\/)?([^/=]+)(?:=([^/=]+))?$/.exec(text) ?? [];
  if (name !== undefined && !KeyName.safeParse(name).success) return null;
  const system = SYSTEM_ROLES.find((one) => one === role);
  if (system) return tenant === undefined ? { role: system, name } : null;
  const whose = tenant ?? (tenants.length === 1 ? tenants[0] : undefined);
  if (role === 'worker') return whose && name ? { role: 'tools', tenant: whose, worker: name } : null;
  const known = TENANT_ROLES.find((one) => one === role);
  return known && whose !== undefined ? { role: known, tenant: whose, name } : null;
}

/** Finds the key at a place. */
export function keyAt({ keys }: Keyring, place: KeyPlace): RingKey | undefined {
  return keys.find((key) => isOf(key, place) && key.name === place.name && key.worker === place.worker);
}

/**
 * Adds a key.
 * @param tools the tools of a worker's key.
 * @throws KeyringError if the tenant does not exist, or the key exists already.
 */
export function withKey(
  ring: Keyring,
  place: KeyPlace,
  publicKey: string,
  tools: readonly string[] = [],
): { readonly ring: Keyring; readonly key: RingKey } {
  const { role, tenant, name, worker } = place;
  if (tenant !== undefined && !ring.settings.tenants.includes(tenant))
    throw new KeyringError(
      'tenant_not_found',
      `tenant ${tenant} does not exist; existing tenants: ${ring.settings.tenants.join(', ')}. Add it with --add tenant=${tenant}`,
    );
  if (keyAt(ring, place))
    throw new KeyringError(
      'key_exists',
      `key ${placeText(place)} already exists; choose another name, or remove the old key first`,
    );
  const key: RingKey = {
    role,
    ...(tenant === undefined ? {} : { tenant: TenantId.parse(tenant) }),
    ...(name === undefined ? {} : { name }),
    ...(worker === undefined ? {} : { worker }),
    file: keyFilePath(place),
    public_key: publicKey,
  };
  const { settings } = ring;
  const workers =
    worker === undefined || tenant === undefined
      ? settings.workers
      : [...(settings.workers ?? []), { tenant, name: worker, tools }];
  return { ring: { settings: { ...settings, workers }, keys: [...ring.keys, key] }, key };
}

/** Removes a key. @throws KeyringError if it does not exist, or is the last key of a system role. */
export function withoutKey(ring: Keyring, place: KeyPlace): { readonly ring: Keyring; readonly key: RingKey } {
  const key = keyAt(ring, place);
  if (!key) {
    const there = ring.keys.filter((one) => one.role === place.role && one.tenant === place.tenant).map(placeText);
    throw new KeyringError(
      'key_not_found',
      `key ${placeText(place)} does not exist; existing keys of the role: ${there.join(', ') || 'none'}`,
    );
  }
  const others = ring.keys.filter((one) => one !== key);
  // Each system role needs a key, to administer the installation and to run its hosts and retention job.
  if (place.tenant === undefined && !others.some((one) => isOf(one, place)))
    throw new KeyringError('key_is_last', `${placeText(place)} is the last key of its role; add another one first`);
  const { settings } = ring;
  const workers = settings.workers?.filter((one) => one.tenant !== key.tenant || one.name !== key.worker);
  return { ring: { settings: { ...settings, workers }, keys: others }, key };
}

/** The text of a place, such as `default/operator=alice`. */
export function placeText({ role, tenant, name, worker }: KeyPlace): string {
  if (worker !== undefined) return `${tenant}/worker=${worker}`;
  return `${tenant === undefined ? '' : `${tenant}/`}${role}${name === undefined ? '' : `=${name}`}`;
}

/** The path of a key's file, relative to the folder of the keys. */
export function keyFilePath({ role, tenant, name, worker }: KeyPlace): string {
  if (worker !== undefined) return `tenants/${tenant}/workers/${worker}.nk`;
  const file = `${role}${name === undefined ? '' : `=${name}`}.nk`;
  return tenant === undefined ? file : `tenants/${tenant}/${file}`;
}

/** The name of a user in its inbox prefix. Each additional key of a role has its own inboxes. */
export function userToken({ role, name }: Pick<KeyPlace, 'role' | 'name'>): string {
  return name === undefined ? role : `${role}-${name}`;
}

/** Whether a key has the permissions of a place's role. A worker's key has fewer than the role `tools`. */
function isOf(key: RingKey, { role, tenant, worker }: KeyPlace): boolean {
  return key.role === role && key.tenant === tenant && (key.worker === undefined) === (worker === undefined);
}
