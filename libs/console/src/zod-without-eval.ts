/** Schemas are read without compiling them: the page’s policy forbids code made from text, and trying it would be reported. */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };
