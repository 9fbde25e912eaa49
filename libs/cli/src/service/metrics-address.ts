/** The address for the metrics of a service. */
import type { MetricsAddress } from '@coxswain/adapter-telemetry';
import { type Invocation, usageError } from '../line/mod.ts';

/**
 * `--metrics-port`, else `COX_METRICS_PORT`; null if neither is set. @throws CliError with exit code 2 for an invalid
 * address.
 */
export async function metricsAddressOf({
  flags,
  env,
}: Pick<Invocation, 'flags' | 'env'>): Promise<MetricsAddress | null> {
  const flag = flags.text('metrics-port');
  const asked = flag ?? env.COX_METRICS_PORT?.trim();
  if (!asked) return null;
  const { metricsAddress } = await import('@coxswain/adapter-telemetry');
  try {
    return metricsAddress(asked, flag === undefined ? 'COX_METRICS_PORT' : '--metrics-port');
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

/** The printed line with the address; empty if there are no metrics. */
export function metricsLine({ metricsUrl }: { readonly metricsUrl: string | null }): string {
  return metricsUrl === null ? '' : `metrics: ${metricsUrl}\n`;
}

/** The JSON member with the address; empty if there are no metrics. */
export function metricsMember({ metricsUrl }: { readonly metricsUrl: string | null }): {
  readonly metrics_url?: string;
} {
  return metricsUrl === null ? {} : { metrics_url: metricsUrl };
}
