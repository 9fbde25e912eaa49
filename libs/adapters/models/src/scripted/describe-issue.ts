/** What zod found wrong, as a person reads it. */
import type { z } from 'zod';

/** `turns[2].calls[0].tool: …`; the member first. */
export function describeIssue(issue: z.core.$ZodIssue): string {
  const member = issue.path.reduce<string>(
    (path, key) => (typeof key === 'number' ? `${path}[${key}]` : path === '' ? String(key) : `${path}.${String(key)}`),
    '',
  );
  return member === '' ? issue.message : `${member}: ${issue.message}`;
}
