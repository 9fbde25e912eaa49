/** Manifest fields of every published package: its homepage, repository and publish settings. */
export const PUBLISHED: Readonly<Record<'homepage' | 'repository' | 'bugs' | 'publishConfig', unknown>>;
