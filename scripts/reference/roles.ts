/**
 * The reference of roles: the subjects that each user of `cox admin auth` may publish and subscribe to. Its source is
 * the table that also produces the NATS configuration.
 */
import { ROLES, type RoleRights, SYSTEM_ROLES, systemRights, TENANT_ROLES, tenantRights } from '@coxswain/adapter-nats';
import { JOURNAL_STREAMS } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** The text of docs/reference/roles.md. */
export function roleReference(): string {
  const settings = { tenants: ['default'] };
  return [
    generatedFrom('libs/adapters/nats/src/auth/roles.ts'),
    '# Roles on a bus\n',
    'The NATS permissions of each role of `cox admin auth`: the subjects that it may publish and subscribe to. The server rejects everything',
    `else. \`N\` stands for each of the ${JOURNAL_STREAMS.length} journal streams. The tenant is \`default\`. [Keys and roles](../guides/security.md)`,
    'shows how to create the keys.\n',
    '## Of the bus\n',
    rows(SYSTEM_ROLES.map((role) => [role, ROLES[role], systemRights(role)])),
    '\n## Of a tenant\n',
    rows(TENANT_ROLES.map((role) => [role, ROLES[role], tenantRights(role, 'default', settings)])),
    '',
  ].join('\n');
}

function rows(roles: readonly (readonly [string, string, RoleRights])[]): string {
  return table(
    ['Role', 'Purpose', 'Publishes', 'Subscribes to'],
    roles.map(([role, what, { publish, subscribe, answers }]) => [
      code(role),
      what,
      listed(publish) + (answers ? ', answers' : ''),
      listed(subscribe),
    ]),
  );
}

function listed(subjects: readonly string[]): string {
  const short = subjects.map((subject) => subject.replace(/COX_JOURNAL_\d+/, 'COX_JOURNAL_N'));
  return [...new Set(short)].map(code).join(', ');
}
