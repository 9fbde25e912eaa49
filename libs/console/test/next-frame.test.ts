import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { onNextFrame } from '../src/page/next-frame.ts';

let drawFrame: (() => void) | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('requestAnimationFrame', (callback: () => void) => {
    drawFrame = callback;
    return 1;
  });
  vi.stubGlobal('cancelAnimationFrame', () => {
    drawFrame = null;
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('renders once, in the next frame', () => {
  const render = vi.fn();
  onNextFrame(render);
  expect(render).not.toHaveBeenCalled();
  drawFrame?.();
  vi.runAllTimers();
  expect(render).toHaveBeenCalledTimes(1);
});

test('renders once although the browser draws no frame', () => {
  const render = vi.fn();
  onNextFrame(render);
  vi.runAllTimers();
  drawFrame?.();
  expect(render).toHaveBeenCalledTimes(1);
});

test('renders nothing after it is cancelled', () => {
  const render = vi.fn();
  onNextFrame(render)();
  vi.runAllTimers();
  drawFrame?.();
  expect(render).not.toHaveBeenCalled();
});
