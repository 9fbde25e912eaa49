/** Alarms when a run has used up a part of its budget: each once in a run, and each in its own way. */
import { defineHooks, type HandlerPayload, remind } from '@coxswain/client';

function told({ session, budgetPct, usage }: HandlerPayload<'OnBudgetThreshold'>): string {
  return `session ${session.id} has used ${budgetPct} % of its ${usage.budget}: ${usage.used} of ${usage.limit}`;
}

export default defineHooks({
  // People hear of it. A terminal stands here for your chat or pager.
  'OnBudgetThreshold(50)': (payload) => console.error(`note: ${told(payload)}`),
  // The model hears of it, while there is something left to come to an end with.
  'OnBudgetThreshold(80)': ({ budgetPct, usage }) =>
    remind(
      `${budgetPct} % of the ${usage.budget} for this task are used up. Finish what you have begun, and begin nothing new.`,
      { dedupeKey: 'budget', tags: ['budget'] },
    ),
  // At 100 percent the run ends by itself: somebody has to know.
  'OnBudgetThreshold(100)': (payload) => console.error(`ALARM: ${told(payload)}, and was ended`),
});
