import type { HostChannel } from '@coxswain/ports';
import type { HostBeat, SessionRef } from '@coxswain/protocol';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { freshSession } from './fresh-session.ts';

interface Heard {
  readonly line: HostChannel;
  readonly beats: HostBeat[];
  readonly rung: Array<{ ref: SessionRef; seq: number }>;
  readonly left: SessionRef[];
}

let hosts = 0;
const freshHost = () => `host-${Date.now().toString(36)}-${++hosts}`;

/** What every line between hosts promises. */
export function hostChannelContract(name: string, createHostChannel: () => HostChannel): void {
  const openLine = async (host: string): Promise<Heard> => {
    const line = createHostChannel();
    onTestFinished(() => line.close());
    const heard: Heard = { line, beats: [], rung: [], left: [] };
    await line.open(host, {
      heartbeat: (beat) => void heard.beats.push(beat),
      notified: (ref, seq) => void heard.rung.push({ ref, seq }),
      sessionLeft: (ref) => void heard.left.push(ref),
    });
    return heard;
  };
  const beatOf = (host: string, no = 1): HostBeat => ({ v: 1, host, state: 'serving', no });

  describe(`a line between hosts in ${name}`, () => {
    test('brings each beat to all hosts, also back to the one that sent it', async () => {
      const [a, b] = [freshHost(), freshHost()];
      const [first, second] = [await openLine(a), await openLine(b)];
      first.line.heartbeat(beatOf(a));
      const isThere = (heard: Heard) => heard.beats.some(({ host, no }) => host === a && no === 1);
      await eventually('both have heard it', () => isThere(first) && isThere(second));
    });

    test('keeps a beat for a moment, and tells it to a host that comes then', async () => {
      const [a, b] = [freshHost(), freshHost()];
      const first = await openLine(a);
      first.line.heartbeat(beatOf(a, 7));
      await first.line.caughtUp();
      await eventually('it is told of it', async () => {
        first.line.heartbeat(beatOf(a, 7));
        await first.line.caughtUp();
        const { beats } = await openLine(b);
        return beats.some(({ host, no }) => host === a && no === 7);
      });
    });

    test('rings the host that is named, and no other', async () => {
      const [a, b] = [freshHost(), freshHost()];
      const [first, second] = [await openLine(a), await openLine(b)];
      const [ref, other] = [freshSession(), freshSession()];
      second.line.notify(a, ref, 12);
      second.line.notify(b, other, 13);
      await eventually('both are rung', () => first.rung.length === 1 && second.rung.length === 1);
      expect(first.rung).toEqual([{ ref, seq: 12 }]);
      expect(second.rung).toEqual([{ ref: other, seq: 13 }]);
    });

    test('notifies all hosts of a session that was left', async () => {
      const [first, second] = [await openLine(freshHost()), await openLine(freshHost())];
      const ref = freshSession();
      first.line.announceSessionLeft(ref);
      const isThere = ({ left }: Heard) => left.some(({ sessionId }) => sessionId === ref.sessionId);
      await eventually('both know of it', () => isThere(first) && isThere(second));
    });

    test('opened again under another name, is rung under that one only', async () => {
      const [before, after] = [freshHost(), freshHost()];
      const heard = await openLine(before);
      const rung: number[] = [];
      await heard.line.open(after, {
        heartbeat: () => undefined,
        notified: (_, seq) => void rung.push(seq),
        sessionLeft: () => undefined,
      });
      const other = await openLine(freshHost());
      other.line.notify(before, freshSession(), 1);
      other.line.notify(after, freshSession(), 2);
      await eventually('it is rung', () => rung.length > 0);
      expect([rung, heard.rung]).toEqual([[2], []]);
    });

    test('closed, is silent', async () => {
      const [a, b] = [freshHost(), freshHost()];
      const [first, second] = [await openLine(a), await openLine(b)];
      first.line.close();
      second.line.notify(a, freshSession(), 1);
      second.line.heartbeat(beatOf(b));
      await eventually('the other hears it', () => second.beats.some(({ host }) => host === b));
      expect([first.rung, first.beats.filter(({ host }) => host === b)]).toEqual([[], []]);
    });
  });
}
