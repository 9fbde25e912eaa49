/**
 * The life of a delivered reminder: shown in every prompt until it ends, in none behind that; it ends once, and for a
 * true reason: its turns are over, a compaction has taken it, someone has cleared it, or a newer one has its key.
 */
import type { EventOf, ReminderFields } from '@coxswain/protocol';
import type { Checker, Journal } from './check.ts';
import { eventsOf } from './check.ts';
import { promptsOf } from './prompts.ts';

interface Life {
  readonly fields: ReminderFields & { readonly body: string };
  readonly text: string;
  readonly firedAt: number;
  isShown: boolean;
  /** Turns and compactions that have counted. */
  counted: number;
  endedAt: number | null;
  /** Gone by itself, and not with a turn or a compaction: a request that is begun again later lacks it. */
  goes: boolean;
}

/** See the top of the file. */
export const checkReminders: Checker = (journal, evidence) => {
  const wrong: string[] = [];
  const lives = livesOf(journal, wrong);
  const live = [...lives].filter(([, { endedAt }]) => endedAt === null).map(([id]) => id);
  const status = evidence.statuses.get(journal.session);
  const listed = (status?.reminders ?? []).map(({ command_id }) => command_id);
  if (status && listed.join() !== live.join())
    wrong.push(`shown in the end are ${live.join() || 'none'}, listed ${listed.join() || 'none'}`);
  for (const { command_id: id, ttl_left } of status?.reminders ?? []) {
    const life = lives.get(id);
    const left = life?.fields.ttl_turns === undefined ? undefined : life.fields.ttl_turns - life.counted;
    if (life && left !== ttl_left) wrong.push(`${id} has ${left} turns left, listed are ${ttl_left}`);
  }

  const texts = [...lives.values()].map(({ text }) => text);
  for (const { at, effectId, said } of promptsOf(journal, evidence.history)) {
    for (const [id, { text, firedAt, endedAt, goes }] of lives) {
      // Of two with the same words nobody can say which of them a prompt shows.
      if (texts.filter((one) => one === text).length > 1) continue;
      const isDue = firedAt < at && (endedAt === null || endedAt > at);
      const shows = said.includes(text);
      // A request that is begun again after a crash is made anew: what was cleared or replaced meanwhile is gone.
      if (isDue && !shows && !goes) wrong.push(`${id} is not in the prompt of ${effectId}`);
      if (endedAt !== null && endedAt < at && shows) wrong.push(`${id} is over, and in the prompt of ${effectId}`);
    }
  }
  return wrong;
};

function livesOf(journal: Journal, wrong: string[]): Map<string, Life> {
  const lives = new Map<string, Life>();
  const fields = new Map<string, Life['fields']>();
  const open = () => [...lives.values()].filter(({ endedAt }) => endedAt === null);
  let compacted: EventOf<'compaction_done'> | null = null;
  let cleared: string | null = null;
  for (const [index, { n, event }] of eventsOf(journal).entries()) {
    const left = ({ fields: { ttl_turns }, counted }: Life) => (ttl_turns ?? Number.POSITIVE_INFINITY) - counted;
    const end = (id: string): Life | undefined => {
      const life = lives.get(id);
      if (!life || life.endedAt !== null) wrong.push(`record ${n}: ${id} ends and is not shown`);
      else life.endedAt = index;
      return life;
    };
    switch (event.type) {
      case 'reminder_injected':
        fields.set(event.command_id, event);
        break;
      case 'reminder_fired': {
        const of = fields.get(event.command_id);
        if (!of || lives.has(event.command_id)) wrong.push(`record ${n}: ${event.command_id} is fired out of turn`);
        else if (!event.audit_only) {
          const text = event.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
          const life = { fields: of, text, firedAt: index, isShown: false, counted: 0, endedAt: null, goes: false };
          if (of.dedupe_key !== undefined && open().some((one) => one.fields.dedupe_key === of.dedupe_key))
            wrong.push(`record ${n}: ${event.command_id} is shown beside another of its key`);
          lives.set(event.command_id, life);
        }
        break;
      }
      case 'loop_checkpoint':
        if (event.kind !== 'post_compact') break;
        for (const life of open()) {
          life.isShown = true;
          if (left(life) <= 0) wrong.push(`record ${n}: "${life.text}" is shown once more than its turns`);
        }
        break;
      case 'turn_end':
        for (const life of open()) if (life.isShown) life.counted++;
        break;
      case 'compaction_done':
        compacted = event;
        for (const life of open()) if (life.isShown) life.counted++;
        break;
      case 'control_outcome':
        if (event.status === 'revoked') cleared = event.target;
        break;
      case 'reminder_deduped': {
        const life = end(event.command_id);
        if (life) life.goes = true;
        const by = fields.get(event.by);
        if (life && (by?.dedupe_key === undefined || by.dedupe_key !== life.fields.dedupe_key))
          wrong.push(`record ${n}: ${event.command_id} makes way for ${event.by}, which has another key`);
        break;
      }
      case 'reminder_expired': {
        const life = end(event.command_id);
        if (!life) break;
        if (event.reason === 'ttl' && left(life) !== 0)
          wrong.push(`record ${n}: ${event.command_id} expired with ${left(life)} turns left`);
        if (event.reason === 'compaction') {
          const took = compacted !== null && compacted.strategy !== 'clear_tool_results';
          if (!took || life.fields.preserve_on_compact)
            wrong.push(`record ${n}: no compaction took ${event.command_id}`);
        }
        if (event.reason === 'cleared') {
          if (cleared !== event.command_id) wrong.push(`record ${n}: nobody cleared ${event.command_id}`);
          life.goes = true;
        }
        break;
      }
      default:
        break;
    }
  }
  return lives;
}
