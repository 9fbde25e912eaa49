import { createHash, randomBytes } from 'node:crypto';
import type { Blobs } from '@coxswain/ports';
import { describe, expect, test } from 'vitest';

const hashOf = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

/** What every store of blobs promises. */
export function blobsContract(name: string, make: () => Blobs): void {
  describe(`blobs in ${name}`, () => {
    test('are not there before they are put', async () => {
      expect(await make().get(hashOf(randomBytes(16)))).toBeNull();
    });

    test.each([1, 65_537, 1_500_000])('come back as they were: %i bytes', async (size) => {
      const blobs = make();
      const data = randomBytes(size);
      await blobs.put(hashOf(data), data);
      expect(hashOf((await blobs.get(hashOf(data))) ?? new Uint8Array())).toBe(hashOf(data));
    });

    test('may be put again, also side by side', async () => {
      const blobs = make();
      const data = randomBytes(1_000);
      await Promise.all([1, 2, 3].map(() => blobs.put(hashOf(data), data)));
      await blobs.put(hashOf(data), data);
      expect(hashOf((await blobs.get(hashOf(data))) ?? new Uint8Array())).toBe(hashOf(data));
    });
  });
}
