/** What every published manifest says about its origin. */
export const PUBLISHED: Readonly<Record<'homepage' | 'repository' | 'bugs' | 'publishConfig', unknown>>;
