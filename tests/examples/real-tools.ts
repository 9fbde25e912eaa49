/**
 * Real tools on a stage: the built-in ones, on a folder whose name no journal says, and other sources. They take turns, in the
 * order in which they are asked, so that the same run comes out the same however long each of them takes.
 */
import { combineToolSources, createBuiltInTools, createCrewTools } from '@coxswain/adapter-tools';
import type { ToolSource, Toolset } from '@coxswain/ports';
import type { RealWork } from '../traces/scenario.ts';

/** Git as it is where nobody has configured it. */
const PLAIN_GIT = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };

/** @param root the folder that every session works in. */
export function realTools(root: string, others: readonly ToolSource[] = []): RealWork {
  let newest: Promise<unknown> | null = null;
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = (newest ?? Promise.resolve()).then(work);
    newest = turn;
    void turn.finally(() => {
      if (newest === turn) newest = null;
    });
    return turn;
  };
  const tools = combineToolSources([createBuiltInTools({ runCommand: { env: PLAIN_GIT } }), ...others]);
  const source: ToolSource = {
    open: (spec, signal) =>
      inTurn(async () => {
        const opened = await tools.open({ ...spec, root }, signal);
        return 'call' in opened ? takingTurns(opened, inTurn) : opened;
      }),
  };
  return { source: combineToolSources([source, createCrewTools()]), underWay: () => newest };
}

function takingTurns(toolset: Toolset, inTurn: <T>(work: () => Promise<T>) => Promise<T>): Toolset {
  return {
    get tools() {
      return toolset.tools;
    },
    call: (call, signal) => inTurn(() => toolset.call(call, signal)),
    probe: (...about) => toolset.probe(...about),
    close: () => inTurn(() => toolset.close()),
  };
}
