/** Which test files run on containers where an engine answers. */
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { OWN_SERVER_FILES } from '../e2e/kit/servers-switch.ts';

const here = import.meta.dirname;

/** The vitest project whose files run on containers. */
export const CONTAINERS_PROJECT = 'containers';

/** All of them, by absolute paths. */
export function filesOnContainers(): string[] {
  return [...deploymentFiles(), ...e2eOnBuses()];
}

/** What brings the deployment up. */
export function deploymentFiles(): string[] {
  return testsIn(here);
}

/** Every file of the e2e suite but those that need a server of their own. */
export function e2eOnBuses(): string[] {
  return testsIn(resolve(here, '../e2e'), (name) => !Object.hasOwn(OWN_SERVER_FILES, name));
}

function testsIn(folder: string, fits: (name: string) => boolean = () => true): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.test.ts') && fits(name))
    .sort()
    .map((name) => resolve(folder, name));
}
