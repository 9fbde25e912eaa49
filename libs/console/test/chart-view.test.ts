/** What of a machine is drawn, and where. */
import { turnChart } from '@coxswain/session';
import Elk from 'elkjs/lib/elk.bundled.js';
import { describe, expect, test } from 'vitest';
import { indexChart } from '../src/statechart/chart.ts';
import { ANYWHERE, compoundPaths, drawnFor, edgeFor, viewOf } from '../src/statechart/chart-view.ts';
import { edgeLabel, layOut } from '../src/statechart/layout.ts';

const index = indexChart(turnChart());
const everything = new Set(compoundPaths(index));
const nothing: ReadonlySet<string> = new Set();

describe('with everything closed', () => {
  const view = viewOf(index, nothing);
  test('each top-level state is one box', () => {
    expect(view.nodes.filter(({ kind }) => kind === 'state').map(({ id }) => id)).toEqual(
      turnChart().root.states.map(({ path }) => path),
    );
  });
  test('two boxes have one arrow at most each way', () => {
    const pairs = view.edges.map(({ from, to }) => `${from} ${to}`);
    expect(new Set(pairs).size).toBe(pairs.length);
  });
  test('what may happen anywhere is drawn once', () => {
    expect(view.edges.filter(({ from }) => from === ANYWHERE).map(({ to }) => to)).toEqual(['tearing_down']);
  });
  test('a state within a closed one is seen in that', () => {
    expect(drawnFor(index, nothing, 'function_execute.running')).toBe('function_execute');
  });
});

describe('with everything open', () => {
  const view = viewOf(index, everything);
  test('every state of the machine has its box', () => {
    const ids: string[] = [];
    const visit = (nodes: typeof view.nodes): void => {
      for (const { id, kind, children } of nodes) {
        if (kind === 'state') ids.push(id);
        visit(children);
      }
    };
    visit(view.nodes);
    expect(ids.sort()).toEqual([...index.states.keys()].filter((path) => path !== '').sort());
  });
  test('a step finds the arrow along which it went, also where a state around it has the way', () => {
    const drawn = new Set(view.edges.map(({ id }) => id));
    for (const { path, states, transitions } of index.states.values()) {
      if (path === '' || states.length > 0) continue;
      for (const { target } of transitions) {
        if (target === null || target === path) continue;
        expect(edgeFor(index, everything, { from: path, to: target }, drawn), `${path} to ${target}`).not.toBeNull();
      }
    }
  });
});

test('an arrow says its first event, and how many more there are', () => {
  const edge = { id: 'e', from: 'a', to: 'b' };
  expect(edgeLabel({ ...edge, reasons: ['press [has_power]', 'press', 'wait'] })).toBe('press +1');
  expect(edgeLabel({ ...edge, reasons: ['an_event_with_a_name_that_is_too_long'] })).toBe(
    'an_event_with_a_name_that_i…',
  );
});

test('in a layout every box lies within the one around it, and none upon its neighbour', async () => {
  const drawing = await layOut(new Elk.default(), viewOf(index, new Set(['function_execute'])));
  const boxes = new Map(drawing.nodes.map((placed) => [placed.node.id, placed]));
  for (const { node, x, y, width, height } of drawing.nodes) {
    for (const { id } of node.children) {
      const child = boxes.get(id);
      expect(child && child.x >= x && child.y >= y, id).toBe(true);
      expect(child && child.x + child.width <= x + width && child.y + child.height <= y + height, id).toBe(true);
    }
  }
  const tops = drawing.nodes.filter(({ node }) => !node.id.includes('.') && node.kind === 'state');
  for (const one of tops) {
    for (const other of tops) {
      if (one === other) continue;
      const apart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      expect(apart, `${one.node.id} and ${other.node.id}`).toBe(true);
    }
  }
  expect(drawing.edges.every(({ points }) => points.length >= 2)).toBe(true);
});
