/** Serves the files of the console. */
export { type ConsoleFile, readConsole } from './console-files.ts';
export { consoleRoutes } from './console-routes.ts';
