/** The dashboard is held against the catalogue of meters: what it asks for is there, and nothing of the catalogue is missing from it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRIC_CATALOGUE, type MetricName } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const path = join(import.meta.dirname, '../../docs/observability/grafana-dashboard.json');
const dashboard = JSON.parse(readFileSync(path, 'utf8')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string }[] };
};
const page = readFileSync(join(import.meta.dirname, '../../docs/reference/metrics.md'), 'utf8');
const shown = dashboard.panels.filter(({ type }) => type !== 'row');

/** The meter that a name in a query is of: a histogram's has endings. */
function meterOf(name: string): MetricName | undefined {
  const base = name.replace(/_(bucket|count|sum)$/, '');
  if (Object.hasOwn(METRIC_CATALOGUE, name)) return name as MetricName;
  const isHistogram = METRIC_CATALOGUE[base as MetricName]?.type === 'histogram';
  return isHistogram ? (base as MetricName) : undefined;
}

const namesIn = (expr: string) => [...expr.matchAll(/coxswain_[a-z_]+/g)].map(([name]) => name);

describe.each(shown)('the panel $title', ({ targets = [] }) => {
  test.each(targets)('asks $expr', ({ expr, legendFormat }) => {
    const names = namesIn(expr);
    expect(names.length).toBeGreaterThan(0);
    const meters = names.map(meterOf);
    expect(meters, `an unknown meter in ${expr}`).not.toContain(undefined);
    const labels = new Set(meters.flatMap((name) => [...METRIC_CATALOGUE[name as MetricName].labels]));
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/,\s*/));
    const selected = [...expr.matchAll(/\{([^{}]*)\}/g)].flatMap(([, list]) =>
      [...(list as string).matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label as string),
    );
    expect(selected.length, `no selector is read in ${expr}`).toBeGreaterThan(0);
    const used = [
      ...grouped,
      ...selected,
      ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label as string),
    ];
    // `le` is a histogram's own, `job` and `instance` Prometheus's.
    expect(used.filter((label) => !labels.has(label) && !['le', 'job', 'instance'].includes(label))).toEqual([]);
    const variables = [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name as string);
    const defined = dashboard.templating.list.map(({ name }) => name);
    expect(variables.filter((name) => !defined.includes(name) && !name.startsWith('__'))).toEqual([]);
    for (const name of meters) expect(page, 'is not in the reference').toContain(`\`${name}\``);
    // A counter that is not a rate only ever rises.
    for (const name of meters)
      if (METRIC_CATALOGUE[name as MetricName].type !== 'gauge') expect(expr).toContain('rate(');
  });
});

test('every meter of the catalogue has a panel', () => {
  const asked = new Set(shown.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => namesIn(expr).map(meterOf))));
  expect(Object.keys(METRIC_CATALOGUE).filter((name) => !asked.has(name as MetricName))).toEqual([]);
});

test('every alert rule asks for meters of the catalogue and their labels', () => {
  const file = join(import.meta.dirname, '../../docs/observability/alert-rules.yaml');
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(0);
  for (const { alert, expr } of rules) {
    const meters = namesIn(expr).map(meterOf);
    expect(meters.length, alert).toBeGreaterThan(0);
    expect(meters, alert).not.toContain(undefined);
    const labels = meters.flatMap((name) => [...METRIC_CATALOGUE[name as MetricName].labels]);
    const selected = [...expr.matchAll(/(\w+)="/g)].map(([, label]) => label as string);
    expect(
      selected.filter((label) => !labels.includes(label)),
      alert,
    ).toEqual([]);
  }
});

test('panels have ids of their own, and none lies on another', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const overlaps = shown.flatMap((a, at) =>
    shown.slice(at + 1).filter((b) => {
      const [p, q] = [a.gridPos, b.gridPos];
      return p.x < q.x + q.w && q.x < p.x + p.w && p.y < q.y + q.h && q.y < p.y + p.h;
    }),
  );
  expect(overlaps).toEqual([]);
});
