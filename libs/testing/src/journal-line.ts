/** Formats an event as a readable line, for tests of the machine and for the messages of failed tests. */
import { callsOf, type SessionEvent, textOf } from '@coxswain/protocol';

/** The line of an event: its type, its subject, then its unusual properties. */
export function journalLine(event: SessionEvent): string {
  switch (event.type) {
    case 'prompt_received':
    case 'agent_start':
      return `${event.type} run ${event.run}`;
    case 'turn_start':
      return `turn_start ${event.turn}`;
    case 'turn_end':
      return words('turn_end', String(event.turn), event.dispatch_skipped && 'dispatch_skipped');
    case 'agent_end':
      return words('agent_end', event.stop_reason, event.pending > 0 && `pending ${event.pending}`);
    case 'loop_checkpoint':
      return words(
        'loop_checkpoint',
        event.kind,
        event.delivered > 0 && `delivers ${event.delivered_ids.join(' ')}`,
        event.inbox_delivered > 0 && `inbox ${event.inbox_delivered}`,
        event.dispatch_skipped && `skips ${event.skipped_call_ids?.join(' ')}`,
      );
    case 'message_complete':
      return words(
        'message_complete',
        event.message.partial && 'partial',
        textOf(event.message) !== '' && JSON.stringify(textOf(event.message)),
        callsOf(event.message).length > 0 &&
          `asks ${callsOf(event.message)
            .map((call) => call.call_id)
            .join(' ')}`,
      );
    case 'context_overflowed':
      return `context_overflowed ${event.turn}`;
    case 'compaction_started':
      return `compaction_started ${event.mode} ${event.strategy} keeps ${event.kept_turns}`;
    case 'compaction_done':
      return words(
        'compaction_done',
        event.mode,
        event.strategy,
        `keeps ${event.kept_turns}`,
        `archives ${event.archived}`,
        `leaves ${event.remaining}`,
        event.instead_of && `instead of ${event.instead_of.strategy}: ${event.instead_of.error.code}`,
      );
    case 'compaction_skipped':
      return `compaction_skipped ${event.mode} ${event.error.code}`;
    case 'call_started':
    case 'call_accepted':
    case 'approval_requested':
    case 'call_cancel_requested':
    case 'call_args_rewritten':
      return `${event.type} ${event.call_id}`;
    case 'child_started':
      return words(
        'child_started',
        event.call_id,
        event.persona,
        event.restart !== undefined && `restart ${event.restart}`,
      );
    case 'child_ended':
      return words('child_ended', event.call_id, event.stop_reason, event.restarts && 'restarts');
    case 'parent_notified':
      return words('parent_notified', event.error?.code);
    case 'files_edited':
      return `files_edited ${event.call_id} ${event.paths.join(' ')}`;
    case 'call_returned':
      return `call_returned ${event.call_id} ${event.status}`;
    case 'call_ended':
      return words(
        'call_ended',
        event.call_id,
        event.status,
        event.denial && `by ${event.denial.by}`,
        event.timed_out && 'timed_out',
        event.is_error !== (event.status !== 'ok') && `is_error ${event.is_error}`,
      );
    case 'approval_decided':
      return words('approval_decided', event.call_id, event.decision, event.hook, event.args && 'edited');
    case 'edited_call_proposed':
      return `edited_call_proposed ${event.call_id} by ${event.command_id}`;
    case 'edited_call_checked':
      return `edited_call_checked ${event.call_id} by ${event.command_id}`;
    case 'approval_notified':
      return `approval_notified ${event.call_id} ${event.status}`;
    case 'permission_remembered':
      return `permission_remembered ${event.rule.id} ${event.rule.scope}`;
    case 'permission_forgotten':
      return `permission_forgotten ${event.rule_id}`;
    case 'permissions_changed':
      return `permissions_changed ${event.rules.length}`;
    case 'steering_received':
    case 'reminder_injected':
      return words(event.type, event.command_id, event.mode, event.preempt && 'preempt');
    case 'followup_received':
      return `followup_received ${event.command_id}`;
    case 'injection_collapsed':
      return `injection_collapsed ${event.command_id} into ${event.into}`;
    case 'reminder_fired':
      return words('reminder_fired', event.command_id, `at ${event.seam}`, event.audit_only && 'audit');
    case 'reminder_deduped':
      return `reminder_deduped ${event.command_id} by ${event.by}`;
    case 'reminder_expired':
      return `reminder_expired ${event.command_id} ${event.reason}`;
    case 'reminder_inherited':
      return `reminder_inherited ${event.command_id} from ${event.from}`;
    case 'feedback_received':
      return `feedback_received ${event.feedback_id} ${event.source}`;
    case 'feedback_dropped':
      return `feedback_dropped ${event.count} ${event.code}`;
    case 'message_injected':
      return words('message_injected', event.command_id, event.origin, `at ${event.seam}`, event.audit_only && 'audit');
    case 'injection_blocked':
      return `injection_blocked ${event.command_id}: ${event.reason}`;
    case 'guard_ended':
      return `guard_ended ${event.command_id} ${event.verdict}`;
    case 'hook_call':
      return words('hook_call', event.hook, event.point, event.call_id ?? event.command_id);
    case 'hook_returned':
      return words(
        'hook_returned',
        event.hook,
        event.point,
        event.call_id ?? event.command_id,
        event.failure?.code ?? event.verdict?.kind,
        event.not_run && 'not_run',
      );
    case 'hook_vetoed':
      return words('hook_vetoed', event.hook, event.point, event.call_id ?? event.command_id, event.decision);
    case 'announced':
      return words('announced', event.point, event.effect_id === undefined && 'without handlers');
    case 'job_report_deferred':
      return `job_report_deferred ${event.receipt.job_id} ${event.receipt.status}`;
    case 'job_reported':
      return `job_reported ${event.receipt.job_id} ${event.receipt.status}`;
    case 'job_untracked':
      return `job_untracked ${event.job_id}`;
    case 'reminder_dropped':
      return `reminder_dropped ${event.hook}`;
    case 'consult_ended':
      return words('consult_ended', event.point, event.call_id);
    case 'command_rejected':
      return `command_rejected ${event.code} ${event.command_id}`;
    case 'control_outcome':
      return words(
        'control_outcome',
        event.control,
        event.status,
        /^(approve|cancel_call|revoke|replace)$/.test(event.control) && event.target,
        event.reason && `because ${event.reason}`,
      );
    case 'suspend_requested':
    case 'suspended':
      return words(
        event.type,
        event.command_id ?? event.call_id,
        event.until_ms !== undefined && `until ${event.until_ms}`,
        event.signal !== undefined && `or ${event.signal}`,
      );
    case 'resumed':
      return words('resumed', event.cause, event.command_id);
    case 'signal_received':
      return `signal_received ${event.name} ${event.command_id}`;
    case 'timer_fired':
      return `timer_fired ${event.what}`;
    case 'run_failed':
      return `run_failed ${event.source} ${event.error.code}`;
    case 'owned':
      return words('owned', String(event.epoch), event.after_copy && 'after copy');
    case 'session_copied':
      return `session_copied ${event.how} ${event.session} ${event.up_to}`;
    case 'copy_failed':
      return `copy_failed ${event.copied} ${event.error.code}`;
    case 'settings_changed':
      return words('settings_changed', ...Object.keys(event.settings), event.reprovisions && 'reprovisions');
    case 'reprovisioned':
      return 'reprovisioned';
    case 'step_started':
      return words('step_started', event.step, event.attempt > 1 && `attempt ${event.attempt}`);
    case 'step_args_rewritten':
    case 'step_output_rewritten':
      return `${event.type} ${event.step} by ${event.by}`;
    case 'step_finished':
      return words(
        'step_finished',
        event.step,
        event.status,
        event.error && `${event.error.code}: ${event.error_boundary}`,
      );
    case 'budget_threshold':
      return words('budget_threshold', event.budget, `${event.percent}%`, event.needed !== undefined && 'uncovered');
    case 'stop_condition_held':
      return `stop_condition_held ${Object.entries(event.condition).flat().join(' ')}`;
    case 'output_rejected':
      return `output_rejected repairs ${event.repairs}/${event.repairs_max}`;
    case 'stop_predicates_asked':
      return `stop_predicates_asked ${event.predicates.join(' ')}`;
    case 'stop_predicates_answered':
      return words(
        'stop_predicates_answered',
        ...event.answers.map(({ predicate, holds, failure }) => `${predicate} ${failure ? 'failed' : holds}`),
      );
    case 'waiting_for_persona':
      return words('waiting_for_persona', event.persona, event.version, event.why);
    case 'persona_wait_ended':
      return words('persona_wait_ended', event.persona, event.why);
    case 'persona_step_lost':
      return words('persona_step_lost', event.instance, event.cause, String(event.lost));
    case 'handoff_emitted':
      return words('handoff_emitted', event.call_id, `${event.from} to ${event.to}`);
    case 'persona_changed':
      return words('persona_changed', event.handoff && `${event.handoff.from} to ${event.provision.persona.name}`);
    case 'prices_changed':
    case 'tools_changed':
    case 'hooks_changed':
    case 'tools_closed':
      return event.type;
  }
}

function words(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter(Boolean).join(' ');
}
