/**
 * Every steer, reminder and follow-up that was accepted comes to exactly one end: it is delivered, word for word as it
 * was last said, blocked, revoked or collapsed into another; or it still waits, and is listed.
 */
import { type EventOf, isDelivery, textOf } from '@coxswain/protocol';
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';

interface Injection {
  body: string;
  replacedBy: string | undefined;
  readonly key: string | undefined;
  readonly fates: string[];
}

/** See the top of the file. */
export const checkFates: Checker = ({ session, records }, { statuses }) => {
  const wrong: string[] = [];
  const injections = new Map<string, Injection>();
  const take = ({ command_id, body, dedupe_key }: Received) =>
    injections.set(command_id, { body, replacedBy: undefined, key: dedupe_key, fates: [] });

  for (const { n, event } of eventsOf({ session, records, bytes: [] })) {
    const end = (id: string, fate: string) => {
      const injection = injections.get(id);
      if (!injection) wrong.push(`record ${n}: ${id} is ${fate} and was never accepted`);
      injection?.fates.push(fate);
    };
    // A hook's reminder waits for no seam: it is delivered in the record that accepts it.
    const begins = event.type === 'prompt_received' && injections.has(event.command_id);
    if (event.type === 'reminder_fired' || isDelivery(event) || begins) {
      end(event.command_id, 'delivered');
      const injection = injections.get(event.command_id);
      const said = event.type === 'prompt_received' ? event.messages.map(textOf).join('\n') : textOf(event.message);
      if (injection && said !== injection.body)
        wrong.push(`record ${n}: ${event.command_id} is delivered in other words`);
      if (injection && event.replaced_by !== injection.replacedBy)
        wrong.push(
          `record ${n}: ${event.command_id} was replaced by ${injection.replacedBy}, not ${event.replaced_by}`,
        );
    }
    switch (event.type) {
      case 'steering_received':
      case 'reminder_injected':
      case 'followup_received':
        if (injections.has(event.command_id)) wrong.push(`record ${n}: ${event.command_id} was accepted twice`);
        take(event);
        break;
      case 'injection_blocked':
        end(event.command_id, 'blocked');
        break;
      case 'injection_collapsed': {
        end(event.command_id, 'collapsed');
        const [older, newer] = [injections.get(event.command_id), injections.get(event.into)];
        if (older?.key !== event.dedupe_key || newer?.key !== event.dedupe_key)
          wrong.push(`record ${n}: ${event.command_id} and ${event.into} have no key in common`);
        break;
      }
      case 'control_outcome': {
        const injection = injections.get(event.target);
        if (event.status === 'replaced') {
          if (!injection || injection.fates.length > 0)
            wrong.push(`record ${n}: ${event.target} was replaced and does not wait`);
          else [injection.body, injection.replacedBy] = [event.body ?? '', event.command_id];
        }
        // A reminder that is shown is cleared by a revoke: that is the end of another life.
        if (event.status === 'revoked' && !(injection && injection.fates[0] === 'delivered'))
          end(event.target, 'revoked');
        break;
      }
      default:
        break;
    }
  }

  const status = statuses.get(session);
  const listed = new Map((status?.pending ?? []).map((one) => [one.command_id, one.body]));
  for (const [id, { fates, body }] of injections) {
    if (fates.length > 1) wrong.push(`${id} came to more than one end: ${fates.join(', ')}`);
    if (listed.has(id) && fates.length > 0) wrong.push(`${id} was ${fates[0]} and is still listed`);
    if (status && fates.length === 0 && !listed.has(id)) wrong.push(`${id} waits and is not listed`);
    if (listed.has(id) && listed.get(id) !== body) wrong.push(`${id} is listed in other words`);
  }
  for (const id of listed.keys()) if (!injections.has(id)) wrong.push(`${id} is listed and was never accepted`);
  return wrong;
};

type Received = EventOf<'steering_received'> | EventOf<'reminder_injected'> | EventOf<'followup_received'>;
