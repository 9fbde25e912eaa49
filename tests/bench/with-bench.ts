/** Puts a bus, a host and a client up for one part, and takes them down whatever becomes of it. */
import { connectNats } from '@coxswain/adapter-nats';
import type { Bench } from './bench-part.ts';
import { startBenchServer } from './bench-server.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { HostProcess } from './host-process.ts';
import { answerRawRequests, makeRawStreams } from './raw-path.ts';

/** Runs `work` on a fresh server and a fresh host. */
export async function withBench<T>(work: (bench: Bench) => Promise<T>): Promise<T> {
  const server = await startBenchServer();
  try {
    const host = await HostProcess.open(server);
    try {
      const nc = await connectNats({ servers: server.url, token: server.token, name: 'bench-driver' });
      try {
        await makeRawStreams(nc);
        answerRawRequests(nc);
        await nc.flush();
        return await work({ server, host, nc });
      } finally {
        await nc.close();
      }
    } finally {
      await host.stop();
    }
  } finally {
    await server.stop();
  }
}

/** Runs sessions until V8 has compiled what they need: what is measured is a host that has been up for a while. */
export async function warmUp({ host, nc }: Bench, model = 'instant/echo', turns = 400): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const ref = freshRef();
    const ended = runEnded(host, ref);
    publishStart(nc, ref, model, turns);
    await ended;
  }
  await host.call('takeTurnTimes', null);
}
