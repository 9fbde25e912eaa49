/**
 * `COX_CHART=xstate` runs tests and the simulation on plain XState instead of the compiled chart
 * (`libs/turn/src/machine/chart-runner.ts`). A program imports this file before anything else; Vitest loads it into
 * every worker if the variable is set.
 */
import { selectChartRunner } from '@coxswain/turn';

const chosen = process.env.COX_CHART ?? 'compiled';
if (chosen !== 'compiled' && chosen !== 'xstate') throw new Error(`COX_CHART is "${chosen}": use compiled or xstate`);
selectChartRunner(chosen);
