/** What keeps people out of a page who do not see it, or use no mouse: by the rules of axe. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Rules of WCAG 2.2 to level AA, and of good practice. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What is wrong with a page as it is shown, of serious and critical impact: which rule, and where. */
export async function seriousBarriers(page: Page): Promise<string[]> {
  // As an expression of the debugger's: the page's own policy lets no script of others in.
  await page.evaluate(`${axe.source}; undefined`);
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)}, resultTypes: ['violations'] })`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) => nodes.map(({ target, html }) => `${id} (${help}): ${target.join(' ')} ${html}`));
}
