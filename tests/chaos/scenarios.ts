/** Every scenario that `npm run chaos` knows. */
import type { CaseTable } from './case-table.ts';
import type { Scenario } from './scenario.ts';
import { clusterParted } from './scenarios/cluster-parted.ts';
import { connectionCut } from './scenarios/connection-cut.ts';
import { diskFull } from './scenarios/disk-full.ts';
import { hostPaused } from './scenarios/host-paused.ts';
import { hostsKilled } from './scenarios/hosts-killed.ts';
import { killedServers, killedServersS2 } from './scenarios/killed-servers.ts';
import { leadersKilled, rivals } from './scenarios/leaders-killed.ts';
import { rollingRestart } from './scenarios/rolling-restart.ts';
import { serverKilled } from './scenarios/server-killed.ts';
import { slowConsumer } from './scenarios/slow-consumer.ts';
import { soak } from './scenarios/soak.ts';
import { storeSettings, unusedStoreSettings } from './scenarios/store-settings.ts';
import { workersKilled } from './scenarios/workers-killed.ts';

/** In the order in which they are listed. */
export const SCENARIOS: readonly Scenario[] = [
  hostsKilled,
  hostPaused,
  rollingRestart,
  workersKilled,
  soak,
  serverKilled,
  diskFull,
  connectionCut,
  slowConsumer,
  leadersKilled,
  rivals,
  clusterParted,
];

/** Tables of cases on servers alone, in the order in which they are listed: those that must hold. */
export const SOUND_TABLES: readonly CaseTable[] = [killedServers, storeSettings];

/** All tables, also those that show how data is lost. */
export const CASE_TABLES: readonly CaseTable[] = [...SOUND_TABLES, killedServersS2, unusedStoreSettings];
