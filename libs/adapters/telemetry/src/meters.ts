/** Meters of the catalogue, implemented with prom-client. */
import type { Meters } from '@coxswain/ports';
import { METRIC_CATALOGUE, METRIC_LABEL_VALUES_MAX, type MetricLabel, type MetricName } from '@coxswain/protocol';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Creates a separate registry with the default meters of the process. Several services may run in one process. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** Creates a counter of the catalogue in the registry. */
export function counterOf<N extends MetricName>(registry: Registry, name: N): Counter<MetricLabel<N>> {
  return new Counter<MetricLabel<N>>(config(registry, name));
}

/** Creates a gauge of the catalogue in the registry. */
export function gaugeOf<N extends MetricName>(registry: Registry, name: N): Gauge<MetricLabel<N>> {
  return new Gauge<MetricLabel<N>>(config(registry, name));
}

/** Creates a histogram of the catalogue in the registry. */
export function histogramOf<N extends MetricName>(registry: Registry, name: N): Histogram<MetricLabel<N>> {
  const { buckets = [] } = METRIC_CATALOGUE[name];
  return new Histogram<MetricLabel<N>>({ ...config(registry, name), buckets: [...buckets] });
}

function config<N extends MetricName>(registry: Registry, name: N) {
  const { help, labels } = METRIC_CATALOGUE[name];
  return { name, help, labelNames: [...labels] as MetricLabel<N>[], registers: [registry] };
}

type Meter = Counter | Gauge | Histogram;

/** Creates the meters of a kind of process in a registry. */
export function registryMeters(registry: Registry, of: 'host' | 'gateway' | 'worker'): Meters {
  const meters = new Map<MetricName, Meter>();
  for (const [key, entry] of Object.entries(METRIC_CATALOGUE)) {
    const name = key as MetricName;
    if (!entry.of.includes(of)) continue;
    // The gateway creates these itself.
    if (of === 'gateway' && name.startsWith('coxswain_gateway_')) continue;
    const make = { counter: counterOf, gauge: gaugeOf, histogram: histogramOf }[entry.type];
    meters.set(name, make(registry, name) as Meter);
  }
  const bounded = new LabelBound();
  return {
    add(name, labels, by = 1) {
      const meter = meters.get(name);
      if (meter instanceof Counter || meter instanceof Gauge) meter.inc(bounded.labels(name, labels), by);
    },
    observe(name, labels, value) {
      const meter = meters.get(name);
      if (meter instanceof Histogram) meter.observe(bounded.labels(name, labels), value);
    },
    census(name, take) {
      const meter = meters.get(name);
      const [label] = METRIC_CATALOGUE[name].labels;
      if (!(meter instanceof Gauge)) return false;
      // prom-client calls `collect` before it writes the values.
      Object.assign(meter, {
        collect() {
          meter.reset();
          for (const [value, count] of take()) meter.set(label === undefined ? {} : { [label]: value }, count);
        },
      });
      return true;
    },
  };
}

/**
 * Bounds the values of labels. Third parties name models, tools and hooks, and their names must not fill the memory.
 */
class LabelBound {
  readonly #known = new Map<string, Set<string>>();

  labels(meter: string, labels: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(
      Object.entries(labels).map(([label, value]) => [label, this.#value(`${meter}.${label}`, value)]),
    );
  }

  #value(key: string, value: string): string {
    const known = this.#known.get(key) ?? new Set<string>();
    this.#known.set(key, known);
    if (known.has(value)) return value;
    if (known.size >= METRIC_LABEL_VALUES_MAX) return 'other';
    known.add(value);
    return value;
  }
}
