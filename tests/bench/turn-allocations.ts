/**
 * Prints how many bytes a plain turn allocates on V8's heap, on a host in memory: an estimate from samples. The argument is
 * the number of turns of each session.
 */
import type { HeapProfiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { FakeHooks } from '../../libs/session/test/fake-hooks.ts';
import { startInstantHost } from './instant-host.ts';

const turns = Number(process.argv[2]);
const host = await startInstantHost(new FakeHooks());
// V8 allocates more before it has optimized the code.
for (let i = 0; i < 10; i++) await host.run(turns);
const bytes = await allocatedBy(async () => {
  for (let i = 0; i < 2; i++) await host.run(turns);
});
host.end();
console.log(bytes / (2 * turns));

/** The bytes that `work` allocates, also those that are collected meanwhile. */
async function allocatedBy(work: () => Promise<void>): Promise<number> {
  const session = new Session();
  session.connect();
  try {
    const sampling = {
      samplingInterval: 4_096,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    };
    await session.post('HeapProfiler.startSampling', sampling);
    await work();
    const { profile } = await session.post('HeapProfiler.stopSampling');
    return bytesOf(profile.head);
  } finally {
    session.disconnect();
  }
}

function bytesOf({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((sum, child) => sum + bytesOf(child), selfSize);
}
