/** Every scenario that `npm run chaos` knows. */
import type { Scenario } from './scenario.ts';
import { hostPaused } from './scenarios/host-paused.ts';
import { hostsKilled } from './scenarios/hosts-killed.ts';
import { rollingRestart } from './scenarios/rolling-restart.ts';
import { soak } from './scenarios/soak.ts';
import { workersKilled } from './scenarios/workers-killed.ts';

/** In the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [hostsKilled, hostPaused, rollingRestart, workersKilled, soak];
