/** Prometheus metrics of the gateway. No label contains a tenant or a session, because a process serves many. */
import { counterOf, createRegistry, gaugeOf, histogramOf } from '@coxswain/adapter-telemetry';

/** The meters of one gateway. */
export type GatewayMetrics = ReturnType<typeof createMetrics>;

/** Creates meters in a separate registry: several gateways may run in one process. */
export function createMetrics() {
  const registry = createRegistry();
  return {
    registry,
    requests: counterOf(registry, 'coxswain_gateway_requests_total'),
    seconds: histogramOf(registry, 'coxswain_gateway_request_seconds'),
    commands: counterOf(registry, 'coxswain_gateway_commands_total'),
    watchers: gaugeOf(registry, 'coxswain_gateway_watchers'),
    feeds: gaugeOf(registry, 'coxswain_gateway_feeds'),
    sent: counterOf(registry, 'coxswain_gateway_events_sent_total'),
    cutOff: counterOf(registry, 'coxswain_gateway_watchers_cut_off_total'),
    refused: counterOf(registry, 'coxswain_gateway_refused_total'),
  };
}
