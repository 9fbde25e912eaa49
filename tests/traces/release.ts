/** `npm run trace:release`: keeps the traces as they are now as those of the version that `package.json` names. */
import { VERSION } from '@coxswain/protocol';
import { releaseTraces, traceNames } from './trace-files.ts';

await releaseTraces(VERSION);
console.log(`${traceNames().length} traces kept for ${VERSION}`);
