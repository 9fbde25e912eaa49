/** Alarms when a run has used up a part of its budget: each threshold fires once in a run. */
import { defineHooks, type HandlerPayload, remind } from '@coxswain/client';

function told({ session, budgetPct, usage }: HandlerPayload<'OnBudgetThreshold'>): string {
  return `session ${session.id} has used ${budgetPct} % of its ${usage.budget}: ${usage.used} of ${usage.limit}`;
}

export default defineHooks({
  // Notifies people. Replace the terminal by your chat or pager.
  'OnBudgetThreshold(50)': (payload) => console.error(`note: ${told(payload)}`),
  // Notifies the model, while there is budget left to finish.
  'OnBudgetThreshold(80)': ({ budgetPct, usage }) =>
    remind(
      `${budgetPct} % of the ${usage.budget} for this task are used up. Finish what you have begun, and begin nothing new.`,
      { dedupeKey: 'budget', tags: ['budget'] },
    ),
  // At 100 percent the run ends: notify the person on call.
  'OnBudgetThreshold(100)': (payload) => console.error(`ALARM: ${told(payload)}, and was ended`),
});
