/** `npm run trace:release`: freezes the golden traces as those of the version in `package.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '@coxswain/protocol';
import { freezeTraces, frozenFiles, releasedVersions } from './released-traces.ts';

const changelog = readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8');
freezeTraces(VERSION, releasedVersions(changelog));
console.log(`${frozenFiles(VERSION).size} files frozen for ${VERSION}`);
