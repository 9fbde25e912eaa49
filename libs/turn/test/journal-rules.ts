/**
 * Invariants of every journal. Each rule reads records alone and reports where it is broken. Tests and people cite the
 * letters in brackets.
 */
import {
  callsOf,
  canonicalJson,
  type EventOf,
  globMatches,
  HOOK_POINTS,
  type HookTable,
  isDelivery,
  type JsonObject,
  type Mode,
  SEAMS,
  type SessionEvent,
  textOf,
} from '@coxswain/protocol';
import { journalLine } from './journal-line.ts';
import type { Surroundings } from './moves.ts';
import { provision } from './moves.ts';

/** The part of a record that rules read. */
export interface Entry {
  readonly n: number;
  readonly events: readonly SessionEvent[];
}

type Rule = (journal: readonly Entry[], around: Surroundings) => string[];

/** Every broken rule, with its record. */
export function brokenRules(journal: readonly Entry[], around: Surroundings): string[] {
  return Object.entries(RULES).flatMap(([name, rule]) => rule(journal, around).map((where) => `${name}: ${where}`));
}

interface Placed {
  readonly n: number;
  readonly event: SessionEvent;
}

function placed(journal: readonly Entry[]): Placed[] {
  return journal.flatMap(({ n, events }) => events.map((event) => ({ n, event })));
}

function place({ n, event }: Placed): string {
  return `record ${n}, ${journalLine(event)}`;
}

const IN_RUN: ReadonlySet<string> = new Set([
  'turn_start',
  'turn_end',
  'loop_checkpoint',
  'message_complete',
  'message_injected',
  'call_started',
  'call_ended',
  'call_returned',
  'approval_requested',
  'approval_decided',
  'suspended',
  'tools_closed',
  'budget_threshold',
  'stop_condition_held',
  'stop_predicates_asked',
  'stop_predicates_answered',
  'step_started',
  'step_finished',
  'output_rejected',
]);

function drop(waiting: { id: string }[], id: string): void {
  const place = waiting.findIndex((injection) => injection.id === id);
  if (place >= 0) waiting.splice(place, 1);
}

/** Whether a skipped call ends as interrupted because a person had been asked about it after a crash. */
function inDoubt(journal: readonly Entry[], n: number, { call_id, status }: EventOf<'call_ended'>): boolean {
  const asked = ({ event }: Placed) =>
    event.type === 'approval_requested' && event.call_id === call_id && event.requested_by === 'unknown_outcome';
  return status === 'interrupted' && placed(journal.filter((entry) => entry.n <= n)).some(asked);
}

/** The rules by name. */
export const RULES: Readonly<Record<string, Rule>> = {
  'one agent_start and one agent_end per run, everything of the run between them': (journal) => {
    const broken: string[] = [];
    let run = 0;
    let phase: 'ended' | 'prompted' | 'running' = 'ended';
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'prompt_received') {
        if (phase !== 'ended' || event.run !== run + 1) broken.push(place(at));
        run = event.run;
        phase = 'prompted';
      } else if (event.type === 'agent_start') {
        if (phase !== 'prompted' || event.run !== run) broken.push(place(at));
        phase = 'running';
      } else if (event.type === 'agent_end') {
        if (phase !== 'running' || event.run !== run) broken.push(place(at));
        phase = 'ended';
      } else if (IN_RUN.has(event.type) && phase !== 'running') broken.push(place(at));
    }
    return broken;
  },

  'one turn_start and one turn_end per turn, numbered from 1 in each run, what a turn does between them': (journal) => {
    const broken: string[] = [];
    let turn = 0;
    let open = false;
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'prompt_received') turn = 0;
      else if (event.type === 'turn_start') {
        if (open || event.turn !== turn + 1) broken.push(place(at));
        turn = event.turn;
        open = true;
      } else if (event.type === 'turn_end') {
        if (!open || event.turn !== turn) broken.push(place(at));
        open = false;
      } else if (event.type === 'agent_end' && (open || event.turns !== turn)) broken.push(place(at));
      else if (/^(message_complete|call_started|call_ended|approval_)/.test(event.type) && !open)
        broken.push(place(at));
    }
    return broken;
  },

  'at most one message_complete per turn, and it is the assistant who speaks': (journal) => {
    const broken: string[] = [];
    let answers = 0;
    for (const at of placed(journal)) {
      if (at.event.type === 'turn_start') answers = 0;
      if (at.event.type === 'message_complete' && (++answers > 1 || at.event.message.role !== 'assistant'))
        broken.push(place(at));
    }
    return broken;
  },

  'an answer is cut short only by what is in the journal: a cancel, a failure, or an interrupt that does not wait': (
    journal,
  ) => {
    let ending = false;
    // Undelivered preempting interrupts: the work that they end must end before their delivery.
    const unheard = new Set<string>();
    return journal.flatMap(({ n, events }) =>
      events.flatMap((event) => {
        if (event.type === 'prompt_received') ending = false;
        if (event.type === 'run_failed' || (event.type === 'control_outcome' && event.control === 'cancel'))
          ending = true;
        if ((event.type === 'steering_received' || event.type === 'reminder_injected') && event.preempt)
          unheard.add(event.command_id);
        if (event.type === 'message_injected') unheard.delete(event.command_id);
        if (event.type !== 'message_complete' || !event.message.partial) return [];
        const fails = events.some(({ type }) => type === 'run_failed');
        return ending || fails || unheard.size > 0 ? [] : [place({ n, event })];
      }),
    );
  },

  'every call that was asked for has exactly one end, in its turn, and starts at most once, before it': (journal) => {
    const broken: string[] = [];
    const calls = new Map<string, { started: number; ended: number }>();
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'message_complete' && !event.message.partial) {
        calls.clear();
        for (const part of callsOf(event.message)) {
          if (calls.has(part.call_id)) broken.push(`${place(at)}: ${part.call_id} twice`);
          calls.set(part.call_id, { started: 0, ended: 0 });
        }
      }
      if (event.type === 'turn_start') calls.clear();
      // A person may let a call run again if a crash left its outcome unknown.
      if (event.type === 'approval_requested' && event.requested_by === 'unknown_outcome') {
        const row = calls.get(event.call_id);
        if (row?.started !== 1) broken.push(place(at));
        if (row) row.started = 0;
      }
      if (event.type === 'call_started') {
        const row = calls.get(event.call_id);
        if (!row || row.started++ > 0 || row.ended > 0) broken.push(place(at));
      }
      if (event.type === 'call_ended') {
        const row = calls.get(event.call_id);
        if (!row || row.ended++ > 0) broken.push(place(at));
      }
      if (event.type === 'turn_end') {
        for (const [id, row] of calls) if (row.ended !== 1) broken.push(`${place(at)}: ${id} has ${row.ended} ends`);
      }
    }
    return broken;
  },

  'a call starts only in a record in which pre_tool_dispatch has passed it': (journal) =>
    journal.flatMap(({ n, events }) => {
      let passed = false;
      return events.flatMap((event) => {
        if (event.type === 'loop_checkpoint' && event.kind === 'pre_tool_dispatch') passed = !event.dispatch_skipped;
        return event.type === 'call_started' && !passed ? [place({ n, event })] : [];
      });
    }),

  'nothing starts that rules, hooks or people have not let through': (journal) => {
    const broken: string[] = [];
    let table: HookTable = [];
    const hooked = (point: string, target: string) =>
      table.some((hook) => hook.point === point && globMatches(hook.pattern, target));
    const tools = new Map<string, string>();
    const allowedForGood = new Set<string>();
    let gated = false;
    const vetted = new Set<string>();
    const granted = new Set<string>();
    const refused = new Set<string>();
    const answered = new Set<string>();
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'hooks_changed') table = event.table;
      if (event.type === 'message_complete') {
        gated = false;
        for (const set of [vetted, granted, refused, answered]) set.clear();
        tools.clear();
        for (const part of callsOf(event.message)) tools.set(part.call_id, part.tool);
      }
      if (event.type === 'consult_ended' && event.point === 'gate_tool_calls') gated = true;
      if (event.type === 'consult_ended' && event.point === 'PreToolUse') vetted.add(event.call_id ?? '');
      if (event.type === 'approval_decided' && event.decision === 'allow') granted.add(event.call_id);
      if (event.type === 'hook_vetoed' && event.decision === 'allow') granted.add(event.call_id ?? '');
      // A hook that denies an edit does not affect the call with the model's arguments.
      if (event.type === 'hook_vetoed' && event.decision === 'deny' && event.command_id === undefined)
        refused.add(event.call_id ?? '');
      if (event.type === 'approval_decided' && /^(deny|expired)$/.test(event.decision)) refused.add(event.call_id);
      if (event.type === 'permission_remembered' && event.rule.action === 'allow') allowedForGood.add(event.rule.id);
      if (event.type === 'permission_forgotten') allowedForGood.delete(event.rule_id);
      if (event.type === 'consult_ended' && event.point === 'permission_asked') answered.add(event.call_id ?? '');
      if (event.type === 'approval_requested') {
        const unasked = hooked('permission_asked', event.tool) && !answered.has(event.call_id);
        if (unasked) broken.push(`${place(at)}: permission hooks were not asked first`);
      }
      if (event.type !== 'call_started') continue;
      const tool = tools.get(event.call_id) ?? '';
      if (tool === 'forbidden') broken.push(`${place(at)}: a rule refuses it`);
      if (tool === 'ask' && !granted.has(event.call_id) && allowedForGood.size === 0)
        broken.push(`${place(at)}: nobody has allowed it`);
      if (refused.has(event.call_id)) broken.push(`${place(at)}: it was refused`);
      if (hooked('gate_tool_calls', 'coder') && !gated) broken.push(`${place(at)}: the gate has not seen the batch`);
      if (hooked('PreToolUse', tool) && !vetted.has(event.call_id)) broken.push(`${place(at)}: no hook has seen it`);
    }
    return broken;
  },

  'an edited call starts only where every PreToolUse hook that sees it has let it pass, and every edit is answered once':
    (journal) => {
      let table: HookTable = [];
      const tools = new Map<string, string>();
      const proposed = new Map<string, JsonObject>();
      return journal.flatMap(({ n, events }) =>
        events.flatMap((event) => {
          const broken = [place({ n, event })];
          if (event.type === 'hooks_changed') table = event.table;
          if (event.type === 'message_complete')
            for (const part of callsOf(event.message)) tools.set(part.call_id, part.tool);
          if (event.type === 'edited_call_proposed') proposed.set(event.command_id, event.args);
          if (event.type === 'command_rejected') proposed.delete(event.command_id);
          if (event.type === 'turn_end' && proposed.size > 0) return broken;
          if (event.type !== 'approval_decided' || !event.args) return [];
          const { command_id = '', call_id, args } = event;
          const asked = proposed.get(command_id);
          proposed.delete(command_id);
          const tool = tools.get(call_id) ?? '';
          const hooks = table.filter(({ point, pattern }) => point === 'PreToolUse' && globMatches(pattern, tool));
          if (!asked) return hooks.length === 0 ? [] : broken;
          const answers = events.flatMap((one) =>
            one.type === 'hook_returned' && one.command_id === command_id ? [one] : [],
          );
          const objects = answers.some(
            ({ verdict, failure, hook: id }) =>
              verdict?.kind === 'deny' ||
              (verdict?.kind === 'rewrite_args' && canonicalJson(verdict.args) !== canonicalJson(args)) ||
              (failure && !hooks.some((hook) => hook.id === id && hook.on_error === 'fail_open')),
          );
          return answers.length > 0 && !objects && canonicalJson(asked) === canonicalJson(args) ? [] : broken;
        }),
      );
    },

  'a result reaches the model only after the hooks that are to see it': (journal) => {
    let table: HookTable = [];
    const watched = (tool: string) =>
      table.some((hook) => hook.point === 'PostToolUse' && globMatches(hook.pattern, tool));
    return journal.flatMap(({ n, events }) =>
      events.flatMap((event, index) => {
        if (event.type === 'hooks_changed') table = event.table;
        if (event.type !== 'call_ended' || !watched(event.tool)) return [];
        const shows = event.result.content.some((part) => part.type === 'text' && part.text.startsWith('result of'));
        const seen = events
          .slice(0, index)
          .some((other) => other.type === 'hook_returned' && other.call_id === event.call_id);
        return shows && !seen ? [place({ n, event })] : [];
      }),
    );
  },

  'what a seam delivers is what its row of the catalogue drains, first in first out, and is said at once': (
    journal,
    { steering },
  ) => {
    const broken: string[] = [];
    const waiting: { id: string; mode: Mode; preempts: boolean }[] = [];
    for (const { n, events } of journal) {
      for (const [index, event] of events.entries()) {
        if (event.type === 'steering_received' || (event.type === 'reminder_injected' && !event.direct))
          waiting.push({ id: event.command_id, mode: event.mode, preempts: event.preempt === true });
        if (event.type === 'control_outcome' && event.status === 'revoked') drop(waiting, event.target);
        if (event.type === 'injection_collapsed') {
          const newer = waiting.find(({ id }) => id === event.into);
          const place = waiting.findIndex(({ id }) => id === event.command_id);
          if (newer && place >= 0) {
            drop(waiting, event.into);
            waiting[place] = newer;
          }
        }
        if (event.type === 'injection_blocked') drop(waiting, event.command_id);
        if (event.type !== 'loop_checkpoint') continue;
        const due = waiting.filter(({ mode }) => SEAMS[event.kind].drains.includes(mode));
        const { delivered_ids: ids } = event;
        const interrupt = due.find(({ mode }) => mode === 'interrupt_immediate')?.id;
        // One message per request: after the first, a preempting one is still delivered, but only after interrupts.
        const hurries = steering === 'one_at_a_time' && due.some(({ preempts }) => preempts) && ids[0] === interrupt;
        const matching = due.map(({ id }) => id);
        const isFirst = hurries ? ids.length === 1 : ids.every((id, i) => matching[i] === id);
        if (ids.length !== event.delivered || !isFirst) broken.push(place({ n, event }));
        for (const id of ids) drop(waiting, id);
        const said = events
          .slice(index + 1)
          .filter(isDelivery)
          .filter(({ seam }) => seam === event.kind)
          .map(({ command_id }) => command_id);
        if (ids.some((id, i) => said[i] !== id)) broken.push(`${place({ n, event })}: ${said.join(' ')} was said`);
      }
    }
    return broken;
  },

  'a reminder is shown once, after it was injected, and its life ends at most once': (journal) => {
    const broken: string[] = [];
    const lives = new Map<string, 'injected' | 'shown' | 'over'>();
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'reminder_injected') lives.set(event.command_id, 'injected');
      if (event.type === 'reminder_fired') {
        if (lives.get(event.command_id) !== 'injected') broken.push(place(at));
        lives.set(event.command_id, event.audit_only ? 'over' : 'shown');
      }
      if (event.type === 'reminder_deduped' || event.type === 'reminder_expired') {
        if (lives.get(event.command_id) !== 'shown') broken.push(place(at));
        lives.set(event.command_id, 'over');
      }
    }
    return broken;
  },
  'no steer and no follow-up that a guard has not let in is said, and no call starts while it asks about an interrupt':
    (journal, around) => {
      if (!(around.hooks ?? []).some(({ point }) => point === 'user_prompt_submit')) return [];
      const judged = new Map<string, string>();
      let known = false;
      const interrupts = new Set<string>();
      return placed(journal).flatMap((at) => {
        const { event } = at;
        if (event.type === 'hooks_changed') {
          // A run that ended before its provision has no hooks, and neither has one with removed guards.
          known = event.table.some(({ point }) => point === 'user_prompt_submit');
          if (!known) interrupts.clear();
        }
        if (event.type === 'steering_received' && event.mode === 'interrupt_immediate')
          interrupts.add(event.command_id);
        // The message arrived without a guard.
        if (event.type === 'message_injected' && !known) interrupts.delete(event.command_id);
        if (event.type === 'injection_blocked' || event.type === 'injection_collapsed')
          interrupts.delete(event.command_id);
        if (event.type === 'control_outcome' && event.status === 'revoked') interrupts.delete(event.target);
        // A new text is checked again.
        if (event.type === 'control_outcome' && event.status === 'replaced') judged.delete(event.target);
        if (event.type === 'guard_ended' && event.verdict !== 'none') {
          const twice = judged.has(event.command_id);
          judged.set(event.command_id, event.verdict);
          interrupts.delete(event.command_id);
          if (twice) return [place(at)];
        }
        if (event.type === 'call_started' && interrupts.size > 0) return [`${place(at)}: ${[...interrupts].join()}`];
        if (!known || event.type !== 'message_injected' || !['steer', 'followup'].includes(event.origin)) return [];
        return judged.get(event.command_id) === 'allowed' ? [] : [place(at)];
      });
    },

  'feedback is said at the seams that are for it alone, all that waits, in order, and marked as no person': (
    journal,
  ) => {
    const waiting: string[] = [];
    return journal.flatMap(({ n, events }) =>
      events.flatMap((event, index) => {
        if (event.type === 'feedback_received') waiting.push(event.feedback_id);
        if (event.type !== 'loop_checkpoint') return [];
        if (!SEAMS[event.kind].feedback) return event.inbox_delivered === 0 ? [] : [place({ n, event })];
        const due = waiting.splice(0);
        const rest = events.slice(index + 1);
        const next = rest.findIndex((later) => later.type === 'loop_checkpoint');
        const said = rest
          .slice(0, next < 0 ? undefined : next)
          .filter((later): later is EventOf<'message_injected'> => later.type === 'message_injected')
          .filter(({ origin }) => origin === 'feedback');
        const right =
          event.inbox_delivered === due.length &&
          said.map(({ command_id }) => command_id).join() === due.join() &&
          said.every(({ message }) => message.role === 'user' && textOf(message).startsWith('<host-notice '));
        return right ? [] : [place({ n, event })];
      }),
    );
  },

  'results first: between a seam that skips calls and what it says stand their results': (journal) =>
    journal.flatMap(({ n, events }) => {
      const skip = events.findIndex((event) => event.type === 'loop_checkpoint' && event.dispatch_skipped);
      if (skip < 0) return [];
      const checkpoint = events[skip] as EventOf<'loop_checkpoint'>;
      const ids = checkpoint.skipped_call_ids ?? [];
      const said = events.findIndex((event, i) => i > skip && isDelivery(event));
      const ended = events
        .slice(skip, said)
        .flatMap((event) =>
          event.type === 'call_ended' && (event.status === 'skipped' || inDoubt(journal, n, event))
            ? [event.call_id]
            : [],
        );
      return ids.length > 0 && ended.join() === ids.join() ? [] : [`${place({ n, event: checkpoint })}: ${ended}`];
    }),

  'one seam skips per turn at most, and turn_end says so': (journal) => {
    const broken: string[] = [];
    let skips = 0;
    for (const at of placed(journal)) {
      const { event } = at;
      if (event.type === 'turn_start') skips = 0;
      if (event.type === 'loop_checkpoint' && event.dispatch_skipped && ++skips > 1) broken.push(place(at));
      if (event.type === 'turn_end' && (event.dispatch_skipped ?? false) !== skips > 0) broken.push(place(at));
    }
    return broken;
  },

  'no injection is said twice': (journal) => {
    const said = new Set<string>();
    return placed(journal).flatMap((at) => {
      if (at.event.type !== 'message_injected' || at.event.origin === 'direct') return [];
      if (said.has(at.event.command_id)) return [place(at)];
      said.add(at.event.command_id);
      return [];
    });
  },

  'every approval that was asked for is decided once': (journal) => {
    const parked = new Set<string>();
    return placed(journal).flatMap((at) => {
      if (at.event.type === 'approval_requested') parked.add(at.event.call_id);
      if (at.event.type === 'approval_decided' && !parked.delete(at.event.call_id)) return [place(at)];
      if (at.event.type === 'turn_end' && parked.size > 0) return [`${place(at)}: ${[...parked].join()} still parked`];
      return [];
    });
  },

  'no run has more turns than its cap, counted from its start, its last idling or its last hand-off': (
    journal,
    around,
  ) => {
    const { max_turns } = provision(around);
    let turns = 0;
    return placed(journal).flatMap((at) => {
      const { event } = at;
      const restarts =
        (event.type === 'loop_checkpoint' && event.kind === 'daemon_idle_pre') ||
        (event.type === 'persona_changed' && event.handoff !== undefined);
      if (event.type === 'prompt_received' || restarts) turns = 0;
      return event.type === 'turn_start' && ++turns > max_turns ? [place(at)] : [];
    });
  },

  'a hand-off is emitted once, before its call begins, and is the last call of its turn that does': (journal) => {
    const emitted = new Set<string>();
    let turn = 0;
    let last: string | null = null;
    return placed(journal).flatMap((at) => {
      const { event } = at;
      if (event.type === 'turn_start') {
        turn++;
        last = null;
      }
      if (event.type === 'handoff_emitted') {
        const key = `${turn} ${event.call_id}`;
        if (emitted.has(key)) return [place(at)];
        emitted.add(key);
      }
      if (event.type !== 'call_started') return [];
      if (last !== null && last !== event.call_id) return [place(at)];
      if (emitted.has(`${turn} ${event.call_id}`)) last = event.call_id;
      return [];
    });
  },

  'another persona has the session with the good end of the call that has handed it over, and with no other': (
    journal,
  ) => {
    const calls = new Map<string, string>();
    return journal.flatMap(({ n, events }) =>
      events.flatMap((event) => {
        if (event.type === 'handoff_emitted') calls.set(event.call_id, event.to);
        if (event.type !== 'persona_changed' || !event.handoff) return [];
        const { call_id } = event.handoff;
        const ends = events.some(
          (one) =>
            (one.type === 'call_ended' || one.type === 'call_returned') &&
            one.call_id === call_id &&
            one.status === 'ok',
        );
        return ends && calls.get(call_id) === event.provision.persona.name ? [] : [place({ n, event })];
      }),
    );
  },

  'each threshold of a budget is told once in a run, job or persona, in order, and nothing is begun after the last': (
    journal,
  ) => {
    const told = new Map<string, number>();
    let spent = false;
    return placed(journal).flatMap((at) => {
      const { event } = at;
      const restarts =
        (event.type === 'loop_checkpoint' && event.kind === 'daemon_idle_pre') ||
        (event.type === 'persona_changed' && event.handoff !== undefined);
      if (event.type === 'prompt_received' || restarts) {
        told.clear();
        spent = false;
      }
      if (event.type === 'budget_threshold') {
        const before = told.get(event.budget) ?? 0;
        told.set(event.budget, event.percent);
        if (spent || event.percent <= before) return [place(at)];
        spent = event.percent === 100;
      }
      if (spent && (event.type === 'turn_start' || event.type === 'call_started')) return [place(at)];
      return spent && event.type === 'agent_end' && event.stop_reason !== 'budget_exceeded' ? [place(at)] : [];
    });
  },

  'consults do not overlap, and each ends where it began': (journal) => {
    let open: EventOf<'hook_call'> | null = null;
    return placed(journal).flatMap((at) => {
      const { event } = at;
      if (event.type === 'hook_call') {
        if (open && (open.effect_id !== event.effect_id || open.point !== event.point)) return [place(at)];
        open = event;
      }
      if (event.type === 'guard_ended' || event.type === 'edited_call_checked') {
        const matches = open?.effect_id === event.effect_id && (!open || open.command_id === event.command_id);
        open = null;
        return matches ? [] : [place(at)];
      }
      if (event.type === 'consult_ended' || event.type === 'announced') {
        // Without an effect no hook was called, so no consult may be open.
        const matches = open?.effect_id === event.effect_id && (!open || open.point === event.point);
        open = null;
        return matches ? [] : [place(at)];
      }
      return [];
    });
  },

  'every step that begins ends once, in its run and in the order of the persona, one at a time': (journal) => {
    let open: EventOf<'step_started'> | null = null;
    let next = 0;
    return placed(journal).flatMap((at) => {
      const { event } = at;
      // Each job starts with the first step again.
      if (event.type === 'prompt_received') next = 0;
      if (event.type === 'message_injected' && event.origin === 'followup') next = 0;
      if (event.type === 'loop_checkpoint' && event.kind === 'daemon_idle_pre') next = 0;
      if (event.type === 'step_started') {
        const broken = open !== null || event.index !== next;
        open = event;
        return broken ? [place(at)] : [];
      }
      if (event.type === 'step_finished') {
        const matches = open?.step === event.step && open.attempt === event.attempt;
        if (event.status === 'completed' || event.error_boundary === 'continue') next = event.index + 1;
        open = null;
        return matches ? [] : [place(at)];
      }
      return event.type === 'agent_end' && open !== null ? [place(at)] : [];
    });
  },

  'effect ids are unique in the session': (journal) => {
    const ids = new Set<string>();
    let consult = '';
    return placed(journal).flatMap((at) => {
      const { event } = at;
      if (event.type === 'hook_call' && event.effect_id === consult) return [];
      const asks = event.type === 'hook_call' || event.type === 'call_started' || event.type === 'suspended';
      if (!asks || event.effect_id === undefined) return [];
      if (event.type === 'hook_call') consult = event.effect_id;
      const twice = ids.has(event.effect_id) || !event.effect_id.startsWith(`${at.n}-`);
      ids.add(event.effect_id);
      return twice ? [place(at)] : [];
    });
  },

  'hook points are those of the catalogue': (journal) =>
    placed(journal).flatMap((at) =>
      at.event.type === 'hook_call' && !HOOK_POINTS.includes(at.event.point) ? [place(at)] : [],
    ),
};
