/** A host that is started while servers choose a leader waits for it, rather than ending. */
import { it, vi } from 'vitest';
import { askUntil } from '../e2e/kit/ask-until.ts';
import { Child, SESSIONS_MAIN } from '../e2e/kit/child.ts';
import { scratchFolder } from '../e2e/kit/scratch.ts';
import { clusterOfFile } from './cluster-of-file.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** Two elections and a start, on a machine that may be busy. */
const PATIENCE_MS = 120_000;

const fixture = clusterOfFile();

it('waits for two of three servers', async () => {
  const [first, second] = fixture.cluster.nodes;
  // One of three leads nothing.
  await Promise.all([first?.kill(), second?.kill()]);
  const env = { NATS_URL: fixture.cluster.natsUrl, COX_STATE_DIR: await scratchFolder('no-leader') };
  const host = new Child(SESSIONS_MAIN, [], { env });
  const says = (text: string) =>
    askUntil(
      text,
      () => {
        if (host.exit) throw new Error(`it has ended: ${host.told}`);
        return host.stdout.includes(text);
      },
      PATIENCE_MS,
    );
  await says('NATS does not respond');
  await fixture.cluster.restore();
  await says('session host is up');
  await host.kill();
});
