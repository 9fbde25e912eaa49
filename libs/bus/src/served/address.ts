import { type ServedKind, subjects, type TenantId, versionToken } from '@coxswain/protocol';

/** A tool, one version of a persona, or a hook service. */
export interface ServedAddress {
  readonly kind: ServedKind;
  readonly tenant: TenantId;
  readonly name: string;
  /** The version of a persona: only its instances take the request. */
  readonly version?: string | undefined;
}

/** The subjects of a service. */
export interface ServedSubjects {
  /** Requests to the queue group. */
  readonly requests: string;
  /** Orders to all instances. */
  readonly orders: string;
  requestTo(instance: string): string;
  orderTo(instance: string): string;
}

/** Builds the subjects of a service. */
export function subjectsOf({ kind, tenant, name, version = '' }: ServedAddress): ServedSubjects {
  const requests =
    kind === 'tools'
      ? subjects.tool(tenant, name)
      : kind === 'hooks'
        ? subjects.hook(tenant, name)
        : subjects.persona(tenant, name, versionToken(version));
  return {
    requests,
    orders: subjects.orders(requests),
    requestTo: (instance) => subjects.requestTo(requests, instance),
    orderTo: (instance) => subjects.orderTo(requests, instance),
  };
}
