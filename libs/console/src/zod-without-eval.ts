/** Disables compiled schemas: the page's content security policy forbids `eval`, and reports attempts. */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };
