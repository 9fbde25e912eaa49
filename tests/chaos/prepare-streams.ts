/** Makes the streams with as many replicas as a run wants: hosts that find none would make them with one. */
import { connectNats, ensureStreams } from '@coxswain/adapter-nats';
import { askUntil } from '../e2e/kit/ask-until.ts';

const PATIENCE_MS = 60_000;

/** See the top of the file. */
export async function prepareStreams(servers: string[], token: string, replicas: 1 | 3): Promise<void> {
  const nc = await connectNats({ servers, token, name: 'chaos-streams' });
  try {
    // Servers that have just met may not place three copies yet.
    let told = '';
    await askUntil(
      'the streams to be made',
      () =>
        ensureStreams(nc, { replicas }).then(
          () => true,
          (error: Error) => {
            told = error.message;
            return false;
          },
        ),
      PATIENCE_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${told}`);
    });
  } finally {
    await nc.close();
  }
}
