/** `cox acp`. */
import { join } from 'node:path';
import { type StartSettings, startAcpService } from '@coxswain/acp';
import { callerFolder, stateDirOf } from '../folders/mod.ts';
import { leaveRunning, withBus } from '../instance/mod.ts';
import { type CommandRun, EXIT, type Invocation } from '../line/mod.ts';
import { modelOf, startBody } from '../run/mod.ts';
import { reserveForProtocol, stopSignal, untilAborted } from '../service/mod.ts';

/** Serves an editor on standard input and output until it disconnects. Its sessions continue. Exits 0. */
export const run: CommandRun = async (invocation) => {
  const unwritable = reserveForProtocol();
  const service = await startAcpService({
    startSettings: () => startSettings(invocation),
    unsentFolder: join(stateDirOf(invocation.flags, invocation.env), 'editor-sessions'),
    input: process.stdin,
    output: process.stdout,
  });
  const stop = stopSignal();
  void unwritable.then(() => service.disconnect());
  const left = Promise.race([service.closed, stop.promise]);
  let isLeft = false;
  void left.then(() => {
    isLeft = true;
  });
  await withBus(invocation, true, async (open) => {
    service.setBus(open);
    try {
      await Promise.race([left, untilAborted(open.gone)]);
    } finally {
      service.setBus(null);
    }
    if (!isLeft) open.gone.throwIfAborted();
    const { isBusy } = service;
    await service.closeSessions();
    if (open.embedded && isBusy) await leaveRunning(open, (text) => process.stderr.write(`${text}\n`));
  });
  stop.release();
  service.disconnect();
  return EXIT.ok;
};

/** The settings from the flags. @throws CliError with exit code 2 naming the flag that is wrong or missing. */
async function startSettings({ flags, env }: Invocation): Promise<StartSettings> {
  const { prompt: _prompt, ...body } = await startBody({ flags, env }, '', false);
  const otherModels = flags.inOrder(['offer-model']).map(({ value }) => modelOf(value, callerFolder(env)));
  return { body, otherModels: otherModels.filter((name) => name !== undefined) };
}
