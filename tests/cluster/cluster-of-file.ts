/** A cluster that lives as long as the file of tests that asks for it, and what processes on it have left. */
import { afterAll, beforeAll } from 'vitest';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { type Cluster, startCluster } from './cluster.ts';

/** Starts three servers before the file's tests and ends them after. */
export function clusterOfFile(): { readonly cluster: Cluster } {
  const fixture = {} as { cluster: Cluster };
  beforeAll(async () => {
    fixture.cluster = await startCluster();
  });
  afterAll(async () => {
    await fixture.cluster?.stop();
    await removeScratch();
  });
  return fixture;
}
