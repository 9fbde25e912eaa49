/** Plants the fault that a run is about, before its test file is loaded. */
import { inject } from 'vitest';
import { FAULTS } from './faults.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The name of a fault; undefined in the run of the sound system. */
    fault: string | undefined;
  }
}

const name = inject('fault');
if (name !== undefined) {
  const planted = FAULTS.find((fault) => fault.name === name);
  if (!planted) throw new Error(`there is no fault "${name}"`);
  planted.plant();
}
