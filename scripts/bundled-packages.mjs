/**
 * The packages that projects import, by their folder in `libs/cli/dist/packages`. `modules` lists the exported modules,
 * the main one first. `browser` is the module that browser builds get instead of the main one.
 */
export const BUNDLED_PACKAGES = {
  client: { name: '@coxswain/client', source: 'libs/client', modules: ['mod', 'http'], browser: 'http' },
  testing: { name: '@coxswain/testing', source: 'libs/testing', modules: ['mod'] },
  // The facade for programs that embed Coxswain. Its source is in the package of the CLI.
  coxswain: { name: 'coxswain', source: 'libs/cli', modules: ['mod'] },
};
