/** The metrics of several processes in one text. */
import { expect, test } from 'vitest';
import { mergeMetrics } from '../src/merge-metrics.ts';
import { counterOf, createRegistry } from '../src/meters.ts';

async function metricsOf(host: string, count: number): Promise<string> {
  const registry = createRegistry();
  registry.setDefaultLabels({ host });
  counterOf(registry, 'coxswain_fence_rejections_total').inc(count);
  return registry.metrics();
}

test('each metric has one heading, and the series of all processes under it', async () => {
  const merged = mergeMetrics([await metricsOf('one-1', 2), await metricsOf('one-2', 3)]);
  expect(merged).toContain(
    '# TYPE coxswain_fence_rejections_total counter\n' +
      'coxswain_fence_rejections_total{host="one-1"} 2\ncoxswain_fence_rejections_total{host="one-2"} 3\n',
  );
  const headings = merged.split('\n').filter((line) => line.startsWith('# TYPE'));
  expect(new Set(headings).size).toBe(headings.length);
  expect(headings.length).toBeGreaterThan(10);
});
