/** Runs a command line in this process. */
import { vi } from 'vitest';
import { dispatch } from '../src/line/mod.ts';

/** What a command line printed, and its exit code. */
export interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line with captured streams. */
export async function runCox(argv: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Printed> {
  const printed = { out: '', err: '' };
  const capture = (stream: 'out' | 'err') => (text: unknown) => {
    printed[stream] += String(text);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(capture('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(capture('err')),
    // The console of Vitest does not write to `process.stdout`.
    ...(['info', 'log'] as const).map((method) =>
      vi.spyOn(console, method).mockImplementation((text) => void capture('out')(`${text}\n`)),
    ),
  ];
  try {
    return { code: await dispatch(argv, env), ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
