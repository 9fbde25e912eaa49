/** The reference of metrics, from the catalogue that also defines the meters. */
import { METRIC_CATALOGUE, METRIC_LABEL_VALUES_MAX, type MetricEntry } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

const OF = { host: 'session hosts', gateway: 'gateways', worker: 'services of tools, personas and hooks' } as const;

/** The text of docs/reference/metrics.md. */
export function metricReference(): string {
  return [
    generatedFrom('libs/protocol/src/catalogues/metric-catalogue.ts'),
    '# Metrics\n',
    'The Prometheus metrics of each process. [Observability](../guides/observability.md#metrics) shows how to serve them. No label contains a',
    `tenant or a session. A label has at most ${METRIC_LABEL_VALUES_MAX} values in a process; further values count as \`other\`.`,
    'Each process also has the metrics of Node (`process_…`, `nodejs_…`).\n',
    ...Object.entries(OF).flatMap(([of, title]) => [
      `## Of ${title}\n`,
      table(
        ['Metric', 'Type', 'Unit', 'Labels', 'Meaning'],
        rowsOf(of as keyof typeof OF).map(([name, { type, unit, labels, help }]) => [
          code(name),
          type,
          unit,
          labels.map(code).join(', '),
          help,
        ]),
      ),
      '',
    ]),
  ].join('\n');
}

function rowsOf(of: keyof typeof OF): [string, MetricEntry][] {
  return Object.entries(METRIC_CATALOGUE).filter(([, entry]) => entry.of.includes(of));
}
