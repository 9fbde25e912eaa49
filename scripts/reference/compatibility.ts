/**
 * The table of versions on the compatibility page, from constants in the code. The rest of the page is written by hand.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { minimumServerVersion } from '@coxswain/ports/discovery';
import { UPCASTS } from '@coxswain/protocol';
import { FORMAT_VERSIONS } from '@coxswain/session';
import { REPLAYED_VERSIONS } from '@coxswain/turn';
import { NODE_VERSIONS } from '../../tests/node-binaries.ts';
import { table } from './markdown.ts';

const PAGE = resolve(import.meta.dirname, '../../docs/reference/compatibility.md');
const START = '<!-- versions: written by `npm run docs` -->\n\n';
const END = '\n\n<!-- end of versions -->';

/**
 * The text of docs/reference/compatibility.md, with a new table of versions between the two markers.
 * @throws Error if a marker is missing from the page.
 */
export function compatibilityReference(): string {
  const page = readFileSync(PAGE, 'utf8');
  const start = page.indexOf(START);
  const end = page.indexOf(END, start);
  if (start < 0 || end < 0) throw new Error(`${PAGE} lacks the marker ${start < 0 ? START.trim() : END.trim()}`);
  return page.slice(0, start + START.length) + versionsTable() + page.slice(end);
}

function versionsTable(): string {
  const { version, machine_version, record_version, tombstone_version, snapshot_version } = FORMAT_VERSIONS;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const reads = [...UPCASTS.keys(), record_version].join(', ');
  const clients = `clients of ${major}.${minor}; clients of ${major}.${minor + 1} during a [rolling upgrade](#rolling-upgrades)`;
  return table(
    ['what', 'version', 'compatible with'],
    [
      ['packages, image, `docker-compose.yml`', version, 'each other: one version for all'],
      [
        'hosts, workers, gateways on one bus',
        `${major}.${minor}`,
        `${major}.${minor + 1}, during a [rolling upgrade](#rolling-upgrades)`,
      ],
      ['HTTP API', '`/v1`', clients],
      ['NATS subjects, command bodies, receipts', `${major}.${minor}`, clients],
      [
        'turn machine: `machine_version`',
        String(machine_version),
        `replays runs of ${[...REPLAYED_VERSIONS].join(', ')} byte for byte`,
      ],
      ['journal records, exports: `record_version`', String(record_version), `reads ${reads}`],
      ['tombstones: `tombstone_version`', String(tombstone_version), `reads ${tombstone_version}`],
      [
        'snapshots: `snapshot_version`',
        String(snapshot_version),
        `reads ${snapshot_version}; ignores others, and reads the journal instead`,
      ],
      ['`nats-server`', `${minimumServerVersion} or newer`, 'see [platforms](#platforms)'],
      ['Node', '20.19 or newer', `tested on ${[...NODE_VERSIONS.values()].join(', ')}`],
    ],
  );
}
