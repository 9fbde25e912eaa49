/** What Prometheus is told. Labels name no tenant and no session: a process serves many. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The meters of one gateway. */
export interface GatewayMetrics {
  readonly registry: Registry;
  readonly requests: Counter<'route' | 'method' | 'status'>;
  readonly seconds: Histogram<'route' | 'method'>;
  readonly commands: Counter<'verb' | 'outcome'>;
  readonly watchers: Gauge<'kind'>;
  readonly feeds: Gauge;
  readonly sent: Counter<'what'>;
  readonly cutOff: Counter<'kind'>;
  readonly refused: Counter<'code'>;
}

/** Meters of their own: several gateways may run in one process. */
export function createMetrics(): GatewayMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    requests: new Counter({
      name: 'coxswain_gateway_requests_total',
      help: 'Requests that were answered.',
      labelNames: ['route', 'method', 'status'],
      registers,
    }),
    seconds: new Histogram({
      name: 'coxswain_gateway_request_seconds',
      help: 'How long answers took; of events and exports, until they ended.',
      labelNames: ['route', 'method'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
      registers,
    }),
    commands: new Counter({
      name: 'coxswain_gateway_commands_total',
      help: 'Commands that were sent to sessions, by what became of them as far as it was waited for.',
      labelNames: ['verb', 'outcome'],
      registers,
    }),
    watchers: new Gauge({
      name: 'coxswain_gateway_watchers',
      help: 'Connections that follow sessions.',
      labelNames: ['kind'],
      registers,
    }),
    feeds: new Gauge({ name: 'coxswain_gateway_feeds', help: 'Sessions that are followed.', registers }),
    sent: new Counter({
      name: 'coxswain_gateway_events_sent_total',
      help: 'Records, deltas and messages of inspections that were sent to watchers.',
      labelNames: ['what'],
      registers,
    }),
    cutOff: new Counter({
      name: 'coxswain_gateway_watchers_cut_off_total',
      help: 'Watchers that were cut off because they did not read.',
      labelNames: ['kind'],
      registers,
    }),
    refused: new Counter({
      name: 'coxswain_gateway_refused_total',
      help: 'Requests that were refused, by code.',
      labelNames: ['code'],
      registers,
    }),
  };
}
