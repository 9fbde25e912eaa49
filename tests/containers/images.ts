/** The images that are tested are those that are deployed: their names are read from docker-compose.yml. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** The file itself. */
export const COMPOSE_FILE = resolve(import.meta.dirname, '../../docker-compose.yml');

/** The server. */
export const NATS_IMAGE = imageOf('nats');

function imageOf(repository: string): string {
  const found = new RegExp(`^ *image: (${repository}:\\S+)$`, 'm').exec(readFileSync(COMPOSE_FILE, 'utf8'));
  if (!found?.[1]) throw new Error(`docker-compose.yml names no image of ${repository}`);
  return found[1];
}
