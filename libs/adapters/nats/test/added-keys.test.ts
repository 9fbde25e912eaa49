/** The rights of a key that is added to an existing key folder. */
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
