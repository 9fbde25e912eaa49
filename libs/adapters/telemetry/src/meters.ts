/** Meters of the catalogue, kept by prom-client. */
import type { Meters } from '@coxswain/ports';
import { METRIC_CATALOGUE, METRIC_LABEL_VALUES_MAX, type MetricLabel, type MetricName } from '@coxswain/protocol';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** A registry of its own, with the meters of the process itself: several services may run in one. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** A counter of the catalogue, made in the registry. */
export function counterOf<N extends MetricName>(registry: Registry, name: N): Counter<MetricLabel<N>> {
  return new Counter<MetricLabel<N>>(config(registry, name));
}

/** A gauge of the catalogue. */
export function gaugeOf<N extends MetricName>(registry: Registry, name: N): Gauge<MetricLabel<N>> {
  return new Gauge<MetricLabel<N>>(config(registry, name));
}

/** A histogram of the catalogue. */
export function histogramOf<N extends MetricName>(registry: Registry, name: N): Histogram<MetricLabel<N>> {
  const { buckets = [] } = METRIC_CATALOGUE[name];
  return new Histogram<MetricLabel<N>>({ ...config(registry, name), buckets: [...buckets] });
}

function config<N extends MetricName>(registry: Registry, name: N) {
  const { help, labels } = METRIC_CATALOGUE[name];
  return { name, help, labelNames: [...labels] as MetricLabel<N>[], registers: [registry] };
}

type Meter = Counter | Gauge | Histogram;

/** The meters that a kind of process has, in a registry. */
export function registryMeters(registry: Registry, of: 'host' | 'gateway' | 'worker'): Meters {
  const meters = new Map<MetricName, Meter>();
  for (const [key, entry] of Object.entries(METRIC_CATALOGUE)) {
    const name = key as MetricName;
    if (!entry.of.includes(of)) continue;
    // Those of the gateway it makes itself.
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
      // prom-client calls it before it writes.
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

/** Strangers name models, tools and hooks; a process must not be filled up with their names. */
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
