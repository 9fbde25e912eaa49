/** The rights of a key that is added to an existing key folder, and the accounts of the server. */
import { expect, test } from 'vitest';
import { authFiles, keyringFrom, newKeyFile, ringFiles, withKey } from '../src/mod.ts';

test.each([true, false])('an added gateway key has the right to approve as the folder says: %s', (gatewayApproves) => {
  const written = authFiles({ tenants: ['default'], gatewayApproves }).find(({ path }) => path === 'keys.json');
  const place = { role: 'gateway', tenant: 'default', name: 'two' } as const;
  const { publicKey } = newKeyFile(place);
  const { ring } = withKey(keyringFrom(written?.text ?? ''), place, publicKey);
  const accounts = ringFiles(ring).find(({ path }) => path === 'accounts.conf')?.text ?? '';
  const [user = ''] = accounts.split('nkey:').filter((text) => text.includes(publicKey));
  const [published = ''] = user.split('subscribe');
  expect(published).toContain('.steer');
  expect(published.includes('.approve')).toBe(gatewayApproves);
});

test.each([
  ['one tenant', ['default']],
  ['two tenants', ['red', 'blue']],
])('the server delivers each request of a tenant once: no two imports overlap, with %s', (_, tenants) => {
  const accounts = authFiles({ tenants }).find(({ path }) => path === 'accounts.conf')?.text ?? '';
  for (const tenant of tenants) {
    const [, account = ''] = accounts.split(`"COX-${tenant}" {`);
    const [, imports = ''] = account.split('imports: [');
    const [own = ''] = imports.split('\n    ]');
    const subjects = [...own.matchAll(/service: \{ account: "COX", subject: "([^"]+)" \}/g)].map(
      ([, subject]) => subject ?? '',
    );
    expect(subjects).toContain(`cox.${tenant}.keys.*.*`);
    expect(subjects).toContain(`$KV.cox_registry.hooks.${tenant}.*`);
    const overlapping = subjects.filter((one) => subjects.some((other) => other !== one && patternOf(other).test(one)));
    expect(overlapping).toEqual([]);
  }
});

/** Matches the subjects that a subject with wildcards matches. */
function patternOf(subject: string): RegExp {
  const tokens = subject
    .split('.')
    .map((token) => (token === '>' ? '.+' : token === '*' ? '[^.]+' : token.replaceAll('$', '\\$')));
  return new RegExp(`^${tokens.join('\\.')}$`);
}
