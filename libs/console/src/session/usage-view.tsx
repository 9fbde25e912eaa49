/** The usage of a session by run, and the state of its budgets. */
import type { SessionStatus } from '@coxswain/protocol';
import type { VNode } from 'preact';
import type { UsageReport } from '../browser-client.ts';
import { budgetText, countText, spentText } from '../page/wording.ts';

const BUDGETS = { tokens: 'Tokens', usd: 'Cost', wall_time_ms: 'Time' } as const;

/** The usage. @param status Null if no host has responded, or the past is shown: the journal has no budgets. */
export function UsageView({
  usage,
  status,
}: {
  readonly usage: UsageReport;
  readonly status: SessionStatus | null;
}): VNode {
  return (
    <div class="usage-view">
      <section aria-label="Budgets">
        <h2>Budgets of the run</h2>
        {status === null || status.budgets.length === 0 ? (
          <p class="empty">{status === null ? 'No host responds.' : 'This run has none.'}</p>
        ) : (
          status.budgets.map(({ budget, used, limit }) => (
            <div class="budget" key={budget}>
              <span>{BUDGETS[budget]}</span>
              <meter min={0} max={limit} high={0.8 * limit} value={used} aria-label={`Budget: ${BUDGETS[budget]}`} />
              <span class="faint">
                {budgetText(budget, used)} of {budgetText(budget, limit)} ({Math.round((100 * used) / limit)} %)
              </span>
            </div>
          ))
        )}
      </section>
      {status !== null && (
        <section aria-label="Context">
          <h2>Context</h2>
          <p>
            about {countText(status.context.tokens)} tokens
            {status.context.window !== null && ` of ${countText(status.context.window)}`} in{' '}
            {countText(status.context.messages)} messages; compacted {countText(status.context.compactions)} times
          </p>
        </section>
      )}
      <section aria-label="Usage">
        <h2>Used</h2>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable elements must be reachable by keyboard */}
        <div class="scrolls" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Persona</th>
                <th scope="col">Model</th>
                <th scope="col">Turns</th>
                <th scope="col">In</th>
                <th scope="col">Out</th>
                <th scope="col">Cost</th>
                <th scope="col">Ended</th>
              </tr>
            </thead>
            <tbody>
              {usage.runs.map((run) => (
                <tr key={run.run}>
                  <td>{run.run}</td>
                  <td>{run.persona ?? '–'}</td>
                  <td>{run.model ?? '–'}</td>
                  <td>{run.turns}</td>
                  <td>{countText(run.usage.inputTokens)}</td>
                  <td>{countText(run.usage.outputTokens)}</td>
                  <td>{spentText(run.costUsd, run.usage.inputTokens + run.usage.outputTokens)}</td>
                  <td>{run.stopReason ?? 'in progress'}</td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr>
                <th scope="row" colSpan={4}>
                  All
                </th>
                <td>{countText(usage.usage.inputTokens)}</td>
                <td>{countText(usage.usage.outputTokens)}</td>
                <td>{spentText(usage.costUsd, usage.usage.inputTokens + usage.usage.outputTokens)}</td>
                <td />
              </tr>
            </tfoot>
          </table>
        </div>
      </section>
    </div>
  );
}
