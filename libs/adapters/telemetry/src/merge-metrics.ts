/** Serves the metrics of several processes at one address. */
import { type MetricsAddress, type MetricsServer, serveMetrics } from './metrics-server.ts';

/** The content type of the Prometheus text format, as prom-client writes it. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Serves merged metrics until it is closed.
 * @param texts reads the metrics of each process. Their series must differ in a label, such as `host`.
 * @throws MetricsPortInUseError, and other errors of listening.
 */
export function serveMergedMetrics(
  texts: () => Promise<readonly string[]>,
  address: MetricsAddress,
): Promise<MetricsServer> {
  return serveMetrics({ contentType: CONTENT_TYPE, metrics: async () => mergeMetrics(await texts()) }, address);
}

/** Merges the series of each metric, because the format allows one group for each metric name. */
export function mergeMetrics(texts: readonly string[]): string {
  const groups = new Map<string, string[]>();
  for (const group of texts.flatMap((text) => text.split('\n\n'))) {
    const [help, type, ...series] = group.split('\n').filter((line) => line !== '');
    if (help === undefined) continue;
    const head = `${help}\n${type}`;
    groups.set(head, [...(groups.get(head) ?? []), ...series]);
  }
  return `${[...groups].map(([head, series]) => [head, ...series].join('\n')).join('\n\n')}\n`;
}
