import type { CommandInbox, CommandNotification, CommandSender, UnroutableCommand } from '@coxswain/ports';
import { BOUNDS, HEADERS, partitionOf, positionalCommandId, type SessionRef } from '@coxswain/protocol';
import { assert, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { bytes, freshSession, text } from './fresh-session.ts';

/** An inbox under test, and the doors to it. */
export interface InboxDoors {
  /** An inbox of its own for one host. */
  createInbox(): Promise<CommandInbox>;
  readonly sender: CommandSender;
  /** Publishes as any client could: any subject, any bytes. Resolves when the bus has it. */
  publish(subject: string, payload: Uint8Array, headers?: Readonly<Record<string, string>>): Promise<void>;
}

/** What every inbox and every sender promises. */
export function inboxContract(name: string, doors: () => InboxDoors): void {
  describe(`an inbox in ${name}`, () => {
    test('rings for a command, which is then read as it was sent', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const host = await openHost(doors());
      const sent = await sender.send(ref, 'steer', bytes('use tabs'), {
        commandId: 'c-1',
        receiptTo: '_INBOX.somewhere',
        actor: 'ada',
      });
      await host.rung(ref, 1);
      expect(host.bells(ref).map(({ seq }) => seq)).toEqual([sent.seq]);
      const [command, ...more] = await host.inbox.read(ref, 0, sent.seq);
      expect(more).toEqual([]);
      expect(command).toMatchObject({
        ref,
        verb: 'steer',
        seq: sent.seq,
        commandId: 'c-1',
        receiptTo: '_INBOX.somewhere',
      });
      expect(command?.actor).toBe('ada');
      expect(text(command?.payload ?? bytes(''))).toBe('use tabs');
      expect(Number.isInteger(command?.storedAtMs)).toBe(true);
      expect(sent.commandId).toBe('c-1');
    });

    test('names a command without an id by its position', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const host = await openHost(doors());
      const sent = await sender.send(ref, 'suspend', bytes(''));
      expect(sent.commandId).toBe(positionalCommandId(host.inbox.incarnation, sent.seq));
      const [command] = await host.inbox.read(ref, 0, sent.seq);
      expect(command?.commandId).toBeUndefined();
      expect(command?.payload.length).toBe(0);
    });

    test('is read in the order in which commands were stored, from a cursor on', async () => {
      const { sender } = doors();
      const [ref, neighbour] = [freshSession(), freshSession()];
      const inbox = await doors().createInbox();
      const seqs: number[] = [];
      for (let i = 0; i < 30; i++) {
        seqs.push((await sender.send(ref, 'steer', bytes(String(i)))).seq);
        await sender.send(neighbour, 'steer', bytes('not this one'));
      }
      const last = seqs.at(-1) ?? 0;
      const all = await inbox.read(ref, 0, last);
      expect(all.map(({ payload }) => text(payload))).toEqual(seqs.map((_, i) => String(i)));
      const tail = await inbox.read(ref, seqs[19] ?? 0, last);
      expect(tail.map(({ seq }) => seq)).toEqual(seqs.slice(20));
      expect(await inbox.read(ref, last, last)).toEqual([]);
    });

    test('is read without a notification too, up to a bound', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const inbox = await doors().createInbox();
      expect(await inbox.read(ref, 0, null)).toEqual([]);
      const seqs: number[] = [];
      for (let i = 0; i <= BOUNDS.inboxCatchUpMax; i++)
        seqs.push((await sender.send(ref, 'steer', bytes(String(i)))).seq);
      const read = async (after: number) => (await inbox.read(ref, after, null)).map(({ seq }) => seq);
      expect(await read(0)).toEqual(seqs.slice(0, BOUNDS.inboxCatchUpMax));
      expect(await read(seqs[1] ?? 0)).toEqual(seqs.slice(2));
    });

    test('deletes what is acknowledged and nothing else', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const host = await openHost(doors());
      const first = await sender.send(ref, 'steer', bytes('1'));
      const second = await sender.send(ref, 'steer', bytes('2'));
      await host.rung(ref, 2);
      host.bells(ref)[0]?.ack();
      await eventually('the first command is gone', async () => {
        const left = await host.inbox.read(ref, 0, second.seq);
        return left.every(({ seq }) => seq !== first.seq);
      });
      expect((await host.inbox.read(ref, 0, second.seq)).map(({ seq }) => seq)).toEqual([second.seq]);
    });

    test('rings again at the next host for what the last one left unacknowledged', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const first = await openHost(doors());
      const done = await sender.send(ref, 'steer', bytes('done'));
      await first.rung(ref, 1);
      first.bells(ref)[0]?.ack();
      await eventually('it is deleted', async () => (await first.inbox.read(ref, 0, done.seq)).length === 0);
      const left = await sender.send(ref, 'steer', bytes('left'));
      await first.rung(ref, 2);
      await first.inbox.close();
      const second = await openHost(doors());
      await second.rung(ref, 1);
      expect(second.bells(ref).map(({ seq }) => seq)).toEqual([left.seq]);
    });

    test('rings again at the same host for what stays unacknowledged', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const host = await openHost(doors());
      const { seq } = await sender.send(ref, 'steer', bytes('still here'));
      await host.rung(ref, 2);
      expect(host.bells(ref).map((bell) => bell.seq)).toEqual([seq, seq]);
      host.bells(ref)[1]?.ack();
      await eventually('it is deleted', async () => (await host.inbox.read(ref, 0, seq)).length === 0);
    });

    test('rings at one of several open hosts at a time, and moves when that one closes', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const hosts = [await openHost(doors()), await openHost(doors())];
      for (let i = 0; i < 5; i++) await sender.send(ref, 'steer', bytes(String(i)));
      const seqsAt = (host: Host) => host.bells(ref).map(({ seq }) => seq);
      await eventually('all have rung', () => new Set(hosts.flatMap(seqsAt)).size === 5);
      const last = Math.max(...hosts.flatMap(seqsAt));
      const holder = hosts.find((host) => seqsAt(host).includes(last));
      const standby = hosts.find((host) => host !== holder);
      assert(holder && standby);
      // On a busy machine a pause of a second moves the pin: the other host then has only what came before.
      expect(Math.max(0, ...seqsAt(standby))).toBeLessThan(Math.min(...seqsAt(holder)));
      for (const bell of holder.bells(ref)) bell.ack();
      await holder.inbox.close();
      const moved = await sender.send(ref, 'steer', bytes('moved'));
      await eventually('the other host rings', () => seqsAt(standby).includes(moved.seq));
    });

    test('rings for the partitions that were asked for, also when they change', async () => {
      const { sender } = doors();
      const near = freshSession();
      const far = sessionElsewhere(near);
      const host = await openHost(doors(), [partitionOf(near.sessionId)]);
      await sender.send(far, 'steer', bytes('later'));
      await sender.send(near, 'steer', bytes('now'));
      await host.rung(near, 1);
      expect(host.bells(far)).toEqual([]);
      host.bells(near)[0]?.ack();
      await host.inbox.open(host.handlers, [partitionOf(far.sessionId)]);
      await host.rung(far, 1);
      host.bells(far)[0]?.ack();
      await sender.send(near, 'steer', bytes('for somebody else'));
      const after = await sender.send(far, 'steer', bytes('after it'));
      await host.rung(far, 2);
      expect(host.bells(far).at(-1)?.seq).toBe(after.seq);
      expect(host.bells(near)).toHaveLength(1);
    });

    test('stays closed if it is closed while it opens: the partitions are free for another host', async () => {
      const { createInbox, sender } = doors();
      const ref = freshSession();
      const inbox = await createInbox();
      const opening = inbox.open({ notify: () => undefined, unroutable: () => undefined });
      await inbox.close();
      await opening;
      const host = await openHost(doors());
      await sender.send(ref, 'steer', bytes('for the other host'));
      await host.rung(ref, 1);
    });

    test('takes more commands than may be unacknowledged at one time', async () => {
      const { sender } = doors();
      const ref = freshSession();
      const host = await openHost(doors());
      const sent = await Promise.all(
        Array.from({ length: 300 }, (_, i) => sender.send(ref, 'steer', bytes(String(i)))),
      );
      const last = Math.max(...sent.map(({ seq }) => seq));
      await eventually('all have rung', () => {
        for (const bell of host.bells(ref)) bell.ack();
        return new Set(host.bells(ref).map(({ seq }) => seq)).size === 300;
      });
      await eventually('all are deleted', async () => (await host.inbox.read(ref, 0, last)).length === 0);
    });

    test('stores a command id once per session', async () => {
      const { sender } = doors();
      const [ref, other] = [freshSession(), freshSession()];
      const inbox = await doors().createInbox();
      const first = await sender.send(ref, 'steer', bytes('first'), { commandId: 'same' });
      const again = await sender.send(ref, 'steer', bytes('again'), { commandId: 'same' });
      expect(again).toEqual(first);
      const elsewhere = await sender.send(other, 'steer', bytes('elsewhere'), { commandId: 'same' });
      expect(elsewhere.seq).not.toBe(first.seq);
      const stored = await inbox.read(ref, 0, elsewhere.seq);
      expect(stored.map(({ payload }) => text(payload))).toEqual(['first']);
    });

    test('refuses to spell a verb that is no token', async () => {
      const { sender } = doors();
      for (const verb of ['', '*', '>', 'a.b', 'a b']) {
        await expect(sender.send(freshSession(), verb, bytes('x'))).rejects.toThrow(TypeError);
      }
    });

    test('hands hostile ids to whoever rejects them, and goes on', async () => {
      const { sender, publish } = doors();
      const mark = freshSession().sessionId;
      const host = await openHost(doors());
      // A verb of its own marks this test's; 10 kB is over what a server may take as a subject, and is tried elsewhere.
      const hostile = ['*', '>', 'ü', '}', 'a'.repeat(65), 'x'.repeat(2_000)];
      const published = hostile.map((id) => `cox.default.session.${id}.${mark}`);
      published.push(`cox.>.session.s.${mark}`, `cox.*.session.s.${mark}`, `cox.ü.session.s.${mark}`);
      for (const subject of published) {
        await publish(subject, bytes('x'), { [HEADERS.receiptTo]: '_INBOX.me' });
      }
      const strays = () => host.strays().filter(({ subject }) => subject.endsWith(mark));
      await eventually('all have come', () => new Set(strays().map(({ seq }) => seq)).size === published.length);
      expect(strays().every(({ receiptTo }) => receiptTo === '_INBOX.me')).toBe(true);
      for (const stray of strays()) stray.ack();
      const ref = freshSession();
      await sender.send(ref, 'steer', bytes('x'));
      await host.rung(ref, 1);
    });

    test('agrees with the sender on the partition of 200 ids', async () => {
      const { sender } = doors();
      const inbox = await doors().createInbox();
      const refs = Array.from({ length: 200 }, () => freshSession());
      const found = await Promise.all(
        refs.map(async (ref) => {
          const { seq } = await sender.send(ref, 'steer', bytes('x'));
          // A read looks into the partition that this side has computed.
          return (await inbox.read(ref, 0, seq)).length;
        }),
      );
      expect(found).toEqual(refs.map(() => 1));
      expect(new Set(refs.map(({ sessionId }) => partitionOf(sessionId))).size).toBeGreaterThan(32);
    });
  });
}

interface Host {
  readonly inbox: CommandInbox;
  readonly handlers: { notify(bell: CommandNotification): void; unroutable(command: UnroutableCommand): void };
  bells(ref: SessionRef): CommandNotification[];
  strays(): UnroutableCommand[];
  /** Waits until a session has rung so many times. */
  rung(ref: SessionRef, times: number): Promise<void>;
}

async function openHost(doors: InboxDoors, partitions?: readonly number[]): Promise<Host> {
  const inbox = await doors.createInbox();
  const bells: CommandNotification[] = [];
  const strays: UnroutableCommand[] = [];
  const handlers = {
    notify: (bell: CommandNotification) => void bells.push(bell),
    unroutable: (command: UnroutableCommand) => void strays.push(command),
  };
  await inbox.open(handlers, partitions);
  onTestFinished(() => inbox.close());
  const of = (ref: SessionRef) => bells.filter((bell) => bell.ref.sessionId === ref.sessionId);
  return {
    inbox,
    handlers,
    bells: of,
    strays: () => strays,
    rung: (ref, times) => eventually(`${ref.sessionId} has rung ${times} times`, () => of(ref).length >= times),
  };
}

function sessionElsewhere(near: SessionRef): SessionRef {
  for (;;) {
    const far = freshSession();
    if (partitionOf(far.sessionId) !== partitionOf(near.sessionId)) return far;
  }
}
