/**
 * The packages that projects import, by their folders in `libs/cli/dist/packages`. `modules`: what each exports, its own module first;
 * `browser`: the one that pages get in place of it.
 */
export const BUNDLED_PACKAGES = {
  client: { name: '@coxswain/client', source: 'libs/client', modules: ['mod', 'http'], browser: 'http' },
  testing: { name: '@coxswain/testing', source: 'libs/testing', modules: ['mod'] },
  // The facade for programs that embed Coxswain. It is in the package of the command.
  coxswain: { name: 'coxswain', source: 'libs/cli', modules: ['mod'] },
};
