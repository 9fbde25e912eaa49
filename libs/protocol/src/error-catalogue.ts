/**
 * The catalogue of error and reject codes: the texts of each. `docs/reference/errors.md` is generated from it. The codes and their
 * kinds are listed in `error-codes.ts`.
 */
import type { ErrorCodeOf, ErrorKind } from './error-codes.ts';

/** One entry: what it means, what the runtime does, what the caller can do. */
export interface CatalogueEntry<Kind extends ErrorKind = ErrorKind> {
  readonly kind: Kind;
  readonly meaning: string;
  readonly runtime: string;
  readonly caller: string;
}

const rejection = (meaning: string, caller: string): CatalogueEntry<'rejection'> => ({
  kind: 'rejection',
  meaning,
  runtime: 'Sends the receipt, and records the rejection within the session’s share. Changes nothing else.',
  caller,
});
/** A request that the gateway refuses: it never becomes a command, and no journal hears of it. */
const refusal = (meaning: string, caller: string): CatalogueEntry<'refusal'> => ({
  kind: 'refusal',
  meaning,
  runtime: 'The gateway answers with a problem document; nothing is sent to the session.',
  caller,
});
const outcome = (meaning: string, runtime: string, caller: string): CatalogueEntry<'outcome'> => ({
  kind: 'outcome',
  meaning,
  runtime,
  caller,
});
const exception = (meaning: string, runtime: string, caller: string): CatalogueEntry<'exception'> => ({
  kind: 'exception',
  meaning,
  runtime,
  caller,
});

/** All codes. */
export const ERROR_CATALOGUE = {
  // Commands that cannot be read
  unknown_command: rejection(
    'The last token of the subject is no verb.',
    'Use the nearest verb, which the message names.',
  ),
  invalid_json: rejection(
    'The body begins with { and is not valid JSON, a member of an object is repeated, or the verb takes no plain text.',
    'Send valid JSON in which each member has a name of its own; for plain text do not begin with {.',
  ),
  invalid_utf8: rejection(
    'The body is not UTF-8.',
    'Send the body as UTF-8; a tool that gives another encoding has to convert it.',
  ),
  invalid_unicode: rejection(
    'A text or a key of the body has a lone surrogate: half of a UTF-16 pair, as in the JSON text "\\ud800".',
    'Correct the field that the message names; cut texts between code points, or replace the half by U+FFFD.',
  ),
  invalid_id: rejection(
    'A session, tenant or command id has other characters than A-Z a-z 0-9 _ -, or more than 64.',
    'Use an id of 1 to 64 of these characters.',
  ),
  body_too_large: rejection('The body is over 256 KiB.', 'Send less, or put the content where a tool can read it.'),
  unknown_field: rejection(
    'The body has a field that the verb does not have.',
    'Leave it out; the message lists the fields.',
  ),
  invalid_field: rejection('A field has a value that is not allowed.', 'Correct the field that the message names.'),
  invalid_mode: rejection(
    'The mode is none of interrupt_immediate, finish_step, audit_only.',
    'Use one of them, or leave mode out.',
  ),
  empty_body: rejection(
    'The text is empty.',
    'Send a text with at least one letter in it; `cancel` ends a run without words.',
  ),
  not_yet_available: rejection(
    'This release knows the name but does not carry it out yet.',
    'Leave it out, or upgrade to a release that has it; the changelog says which does.',
  ),
  receipt_subject_refused: rejection(
    'The receipt subject is not an inbox: `_INBOX.…`, or `_INBOX_<name>.…`, of at most 256 characters.',
    'Subscribe to an inbox and name that.',
  ),
  unknown_hook_point: rejection(
    'A hook is registered for a point that there is not.',
    'Use a point of docs/reference/hooks.md, in snake_case or PascalCase.',
  ),
  invalid_pattern: rejection(
    'The pattern of a hook is neither a glob nor a condition, its regular expression is not valid or too large, or no payload of the point has what it names.',
    'Write a glob, or path == "value", path != "value", path =~ "regex" (RE2); docs/reference/hooks.md says what payloads have.',
  ),
  job_unknown: rejection(
    'No hook of the session has an open job of this id: no hook started it, or it has ended.',
    'Report a job under the id of its receipt, and its end once.',
  ),
  internal_subject: rejection('Only hosts and workers may use this verb.', 'Use a verb of the command table.'),
  // The gateway
  route_not_found: refusal(
    'The gateway has no such address.',
    'Use a route of docs/reference/http.md; the gateway lists its own at /openapi.json.',
  ),
  method_not_allowed: refusal(
    'The address is there, but does not take this method.',
    'Use a method that the header `allow` names.',
  ),
  unsupported_media_type: refusal(
    'The body is neither JSON nor, where that is taken, plain text.',
    'Send JSON with the header `content-type: application/json`.',
  ),
  request_unreadable: refusal(
    'What came on the connection is not HTTP that can be read, or a request repeats a header that it may have once.',
    'Speak HTTP/1.1, and without TLS where the gateway is reached directly; send host, authorization and content-type once.',
  ),
  request_closed: refusal(
    'Whoever has sent the request has gone before it was answered.',
    'Send it again; a command that was sent may have been stored: under its id, or an idempotency key, it is taken once.',
  ),
  expectation_failed: refusal(
    'The request expects something of the server that it does not do.',
    'Leave the header `expect` out, or send `100-continue`.',
  ),
  headers_too_large: refusal('The headers of the request are over 16 KiB.', 'Send fewer or shorter ones.'),
  request_too_slow: refusal('The request was not there in time.', 'Send it again, faster or in smaller parts.'),
  upgrade_required: refusal('The address is a WebSocket’s.', 'Connect with a WebSocket client.'),
  unauthorized: refusal(
    'The request has no token, or one that is unknown, over or not valid.',
    'Send `authorization: Bearer TOKEN`.',
  ),
  scope_missing: refusal(
    'The token does not have the scope that this needs; the message names it.',
    'Use a token that has it.',
  ),
  host_not_allowed: refusal(
    'The request names a host that the gateway is not: what pages do whose name was made to lead here.',
    'Use an address that the gateway was told with --public-url.',
  ),
  origin_not_allowed: refusal(
    'A page of another site has sent the request.',
    'Allow the site with --allow-origin, if it is yours.',
  ),
  rate_limited: refusal(
    'More requests have come from this token, or from this address without one, than are taken.',
    'Wait as many seconds as `retry-after` says.',
  ),
  too_many_watchers: refusal(
    'As many connections follow sessions as this gateway takes: of the session, the token or all together.',
    'Close some, or run another gateway.',
  ),
  command_id_reused: refusal(
    'The `command_id` was used for another command of the session, which stands; this one was not taken.',
    'Use a new `command_id` for what is new, or none.',
  ),
  idempotency_key_reused: refusal(
    'The idempotency key was used for another request.',
    'Use a new key for what is new.',
  ),
  idempotency_key_undecided: refusal(
    'The first command under the idempotency key could not be compared with this one in time: it may not be recorded yet.',
    'Send it again in a moment; where it goes on, see whether a host runs: `cox doctor`.',
  ),
  gateway_stopping: exception(
    'The gateway is about to end.',
    'Ends what it was doing and takes nothing new.',
    'Connect again: another gateway, or this one once it is back.',
  ),
  gateway_busy: exception(
    'As many expensive reads run as the gateway takes at once.',
    'Reads nothing.',
    'Try again in a moment.',
  ),
  auth_unavailable: exception(
    'The keys by which tokens are checked cannot be had.',
    'Lets nobody in meanwhile.',
    'See that the address of --jwks answers.',
  ),
  tokens_unreadable: exception(
    'The file of tokens, or of keys for tokens, cannot be read or is not valid.',
    'Starts nothing; a gateway that runs keeps what it read before.',
    'Correct the file, or write a new one with `cox admin token add`.',
  ),
  gateway_option_invalid: exception(
    'A gateway cannot be started as it was asked to.',
    'Starts nothing.',
    'Correct what the message names.',
  ),
  token_exists: exception(
    'A token of this name is in the file.',
    'Changes nothing.',
    'Use another name, or remove it.',
  ),
  token_not_found: exception(
    'No token of this name is in the file.',
    'Changes nothing.',
    '`cox admin token list` has those that there are.',
  ),
  // Commands that do not fit the session
  session_not_found: rejection('There is no such session.', 'Check the id; `cox session list` lists them.'),
  record_not_there: refusal(
    'The journal ends before the record that was to be the first, or to be shown.',
    'Ask for a record that it has: the message says which is the newest. Whoever follows may ask for the next one, and waits for it.',
  ),
  session_exists: rejection(
    'A session of this id is there already and has ended.',
    'Use `prompt` to go on with it, or another id.',
  ),
  session_deleted: {
    kind: 'rejection',
    meaning: 'The session was deleted; the message says when, by whom and why. Its id is never used again.',
    runtime: 'Sends the receipt, and records nothing: there is no journal any more.',
    caller: 'Use another id; an export of the session can be imported with --as.',
  },
  session_being_copied: {
    kind: 'rejection',
    meaning: 'The session is deleted, and its records are kept for now: a fork is being made of them.',
    runtime: 'Takes no command and no further fork; the fork that was begun is completed.',
    caller: 'Run `cox session delete` again, or `cox admin retention` later: either goes on where the deletion stands.',
  },
  session_busy: rejection(
    'The session is running: it takes no second prompt, and cannot be deleted.',
    'Steer it, queue a follow-up, or wait for its end; cancel its run before you delete it.',
  ),
  message_id_reused: rejection(
    'The session was started under this `message_id` with another body; that start stands.',
    'Use a new `message_id` for a new start, or send the first body again.',
  ),
  command_too_old: rejection(
    'The command id is older than those the session remembers, so it cannot be told from a repetition.',
    'Send it under a new id.',
  ),
  not_pending: rejection('No approval of this call is pending.', '`cox approval list` lists what is.'),
  call_not_open: rejection(
    'The call of a call_outcome, or of a child’s report, does not wait for one: it has ended, was never begun, or is not of a long_running tool.',
    'Nothing; what came is dropped, and this is the note of it.',
  ),
  stale_epoch: rejection(
    'A call_outcome is of an earlier sending of its call, or of one that was never made; or a host that has lost the session asks for a bus tool.',
    'Nothing; whoever has the newest sending will bring the outcome.',
  ),
  call_unknown: rejection('The session has no such call in its open batch.', 'Check the call id.'),
  already_decided: rejection(
    'Someone has decided this call already; the first decision stands.',
    'Nothing; the message says who decided.',
  ),
  edited_call_denied: rejection(
    'A permission rule or a `PreToolUse` hook denies the call with the edited arguments. The call stays parked.',
    'Decide again: with other arguments, with those of the model, or deny. The message names the rule or the hook; `detail` has it for programs.',
  ),
  edit_pending: rejection(
    'Hooks are asked about an edit of this call, or they changed before they could be asked.',
    'Decide again in a moment. A decision without edited arguments is taken at once.',
  ),
  not_rememberable: rejection(
    'A decision cannot be remembered for calls like this one: its arguments are too large, or the question is whether it ran.',
    'Decide this call alone, without remember; a rule of the persona holds for later ones.',
  ),
  too_many_rules: rejection(
    'The session, or its persona, remembers 128 rules already.',
    'Remove some: `cox approval rules` lists them, and `--remove RULE` removes one.',
  ),
  notice_failed: outcome(
    'A notice of a waiting approval could not be delivered to the webhook.',
    'Has tried it several times, records that it failed; the approval waits as before.',
    'See that the address answers 2xx; `cox approval list` lists what waits.',
  ),
  not_running: rejection('The session is not running.', 'Nothing to do, or send a prompt.'),
  already_cancelled: rejection(
    'The run was cancelled already.',
    'Nothing: the run is over. Prompt the session to go on.',
  ),
  not_suspended: rejection(
    'The session is not suspended.',
    'Nothing: it goes on already, or has ended; `cox session show` says which.',
  ),
  already_suspended: rejection('The session is suspended already.', 'Resume it when it should go on.'),
  already_delivered: rejection(
    'What the command names is in the transcript already.',
    'Nothing can be taken back; steer again. A reminder that is still shown can be revoked.',
  ),
  already_revoked: rejection(
    'What the command names was revoked, collapsed into a newer one with its dedupe key, or blocked by a hook.',
    'Nothing: it will not be delivered. Send it again under a new id if it should be.',
  ),
  unknown_command_id: rejection(
    'The session knows no steer, reminder or follow-up of this id, or has forgotten it.',
    '`cox message list` lists what waits.',
  ),
  too_many_reminders: rejection(
    '256 reminders, or reminders of 1 MiB together, wait or are shown already.',
    'Withdraw some (`cox message withdraw`), or give them a dedupe_key or ttl_turns.',
  ),
  too_many_signals: rejection(
    '64 signals wait already that no suspension has waited for.',
    'Send only those that a session waits for.',
  ),
  too_many_pending: rejection('1,000 injections wait already.', 'Wait until some are delivered, or revoke some.'),
  pending_full: rejection(
    'The queued steers, reminders and follow-ups of the session would have more than 1 MiB together.',
    'Wait until some are delivered, revoke some, or put a long text into a file and name the file.',
  ),
  quota_exceeded: {
    kind: 'rejection',
    meaning: 'The tenant, or the sender, has used up a quota of the host; the message names it.',
    runtime: 'Sends the receipt and counts it. Records nothing, and does not remember the id.',
    caller: 'Send it again after the time that the message names, under the same id; or have the quota raised.',
  },
  invalid_arguments: rejection(
    'The edited arguments do not fit the tool’s schema.',
    'Correct them as the message says.',
  ),
  // Forks
  fork_origin_not_found: rejection(
    'There is no session to fork under this id, in this tenant.',
    'Check the id; `cox session list` lists them.',
  ),
  fork_record_not_found: rejection(
    'The session to fork has fewer records than that.',
    'Fork at a record that it has; the message says how many.',
  ),
  fork_too_long: rejection(
    'More records would have to be copied than a fork may have: 10,000.',
    'Fork at an earlier record.',
  ),
  fork_change_misfit: rejection(
    'What is to be otherwise does not fit the record at which is forked, or a hook that it concerns has no answer.',
    'See what the record is in the message; fork at another, or change something else.',
  ),
  command_id_taken: rejection(
    'The session to fork has had a command of this id, and the fork will know it as that.',
    'Send the fork under another id.',
  ),
  // What the world did
  fork_origin_gone: outcome(
    'While a session was being copied, its journal was deleted or changed.',
    'Keeps what was copied and ends the run as failed.',
    'Fork again, if the origin is there; else go on from what was copied, by a prompt.',
  ),
  persona_not_found: outcome(
    'No persona of this name is known to the host.',
    'Ends the run as failed.',
    'Check the name, or send the whole definition.',
  ),
  mode_not_found: outcome(
    'The persona has no mode of this name.',
    'Ends the run as failed.',
    'Name one that the message lists, or none.',
  ),
  skills_unavailable: outcome(
    'The persona has skills, and the host’s tools have no load_skill by which a model could read them.',
    'Ends the run as failed, before the model is asked.',
    'Host it with the built-in tools, or with createLoadSkillTool() beside tools of your own.',
  ),
  skill_unknown: outcome(
    'load_skill was asked for a skill, or a file of one, that the persona has not.',
    'The model gets an error result, which says what there is.',
    'Use a name of the index, and a path that the skill lists.',
  ),
  model_not_given: outcome(
    'Neither the start nor the persona names a model.',
    'Rejects a start before there is a session; ends a later run as failed.',
    'Give a model: provider/name.',
  ),
  provider_unknown: outcome(
    'No adapter serves this provider.',
    'Rejects a start before there is a session; ends a later run as failed.',
    'Use one that the message lists.',
  ),
  model_key_missing: outcome(
    'The provider needs a key that the host does not have.',
    'Rejects a start before there is a session; ends a later run as failed.',
    'Set the variable that the message names where the session is hosted: in this shell, or, where one runs already, in that of `cox up` or `cox serve sessions`, and start that again.',
  ),
  not_allowed_by_policy: {
    kind: 'rejection',
    meaning:
      'The request names something that the policy of the host does not allow: the message has the field and the line.',
    runtime:
      'Rejects the command before anything of it is done, and logs it. Ends a run as failed if an imported, forked or older session names it.',
    caller:
      'Use what the message lists. Or ask the person who runs the host to add it to the policy: see the guide “Policy of a host”.',
  },
  secret_in_request: rejection(
    'A URL has a user name, a password or a key, or a header or variable of an MCP server has a literal credential.',
    'Name a variable of the host instead, and allow it in the `variables` of the host’s policy. Nothing of the value was kept.',
  ),
  root_not_local: outcome(
    'The root folder is not on this host, or outside the folders that the host allows.',
    'Ends the run as failed.',
    'Start the session where the folder is, or give another root; `roots` of the host’s policy names the folders that it allows.',
  ),
  mcp_server_failed: outcome(
    'An MCP server could not be started or did not answer.',
    'Ends the run as failed in provisioning.',
    'Check the server’s command and its stderr, quoted in the message.',
  ),
  price_unknown: outcome(
    'The run has a limit in USD, and no table says what its model costs.',
    'Ends the run as failed, before the model is asked.',
    'Add the model to a table of prices and name its file in COX_PRICES, or limit tokens instead.',
  ),
  output_schema_invalid: outcome(
    'The output schema of the start or the persona is not a valid JSON Schema.',
    'Ends the run as failed, before the model is asked.',
    'Correct the schema. The message says what is wrong with it.',
  ),
  output_invalid: outcome(
    'The final answer does not fit the output schema, and the repair turns (`limits.output_repairs`) are used up.',
    'Ends the run as failed. The journal contains the answers, and the problems of each in output_rejected.',
    'Read the problems in the message. Simplify the schema, describe its members, or use a stronger model.',
  ),
  step_denied: outcome(
    'A PreStep or PostStep hook has refused a step, or failed and fails closed.',
    'The step has failed: its error_boundary says whether the run fails, goes on or waits for a person.',
    'See the message, which names the hook.',
  ),
  step_budget_exceeded: outcome(
    'A step has used up its max_tokens or max_usd before it came to an answer.',
    'The step has failed: its error_boundary says whether the run ends as budget_exceeded, goes on or waits for a person.',
    'Give it more, or less to do.',
  ),
  predicate_unknown: outcome(
    'The persona’s stop_when names a predicate that the host’s program has not registered.',
    'Ends the run as failed, before the model is asked.',
    'Register it with the host, or name one that the message lists.',
  ),
  predicate_failed: outcome(
    'A predicate of a stop condition threw, did not answer in 5 s, gave neither true nor false, or is not there any more.',
    'Takes it as not holding and notes it; the run goes on within its limits.',
    'Mend the predicate, whose name and failure the message has; the run went on without it.',
  ),
  provision_failed: outcome(
    'The session’s surroundings could not be resolved.',
    'Ends the run as failed.',
    'Mend what the message names (a tool, a file, a server) and prompt the session again.',
  ),
  model_request_failed: outcome(
    'The provider refused the request.',
    'Ends the run as failed.',
    'See the message, which quotes the provider.',
  ),
  context_overflow: outcome(
    'The provider refused the prompt: it is longer than the model’s context window.',
    'Compacts what came before and sends the prompt once more; where nothing can be compacted, a hook vetoed it, or the provider refuses again, ends the run as failed.',
    'Say less at once, bound tool results, set `model.context_window`, or choose a model with a larger window.',
  ),
  summary_empty: outcome(
    'The model was asked to summarise older messages, and answered without a word.',
    'Clears old tool results instead, or goes on without a compaction.',
    'Use another model, or the strategy clear_tool_results.',
  ),
  compaction_aborted: outcome(
    'The run was ended while older messages were being summarised.',
    'Goes on ending the run; the view stays as it was.',
    'Nothing: the next run considers compaction again.',
  ),
  model_rate_limited: outcome(
    'The provider answered 429 until the retries were used up.',
    'Retries with back-off, honouring retry-after; then ends the run as failed.',
    'Wait, or raise the provider’s limit.',
  ),
  model_unavailable: outcome(
    'The provider could not be reached or answered 5xx until the retries were used up.',
    'Retries with back-off; then ends the run as failed.',
    'Check the address and the provider’s status.',
  ),
  model_stream_broken: outcome(
    'The answer broke off, had no final frame, or held garbage.',
    'Keeps the partial text, retries where nothing was shown yet, else ends the run as failed.',
    'Prompt the session again; where it stays, see the provider’s status or choose another model.',
  ),
  model_timeout: outcome(
    'The provider sent nothing for too long.',
    'Keeps the partial text, then as model_stream_broken.',
    'Prompt the session again; where it stays, see the provider’s status or choose another model.',
  ),
  model_restarts_exhausted: outcome(
    'The model call was begun again after crashes more often than is allowed.',
    'Ends the run as failed.',
    'See why hosts crash; prompt again.',
  ),
  script_exhausted: outcome(
    'The scripted model has no unused turn that matches.',
    'Ends the run as failed.',
    'Add a turn to the script.',
  ),
  script_invalid: outcome(
    'The script cannot be read, or does not fit the documented format.',
    'Rejects a start before there is a session; ends a later run as failed.',
    'Correct the path of the script, or the member that the message names.',
  ),
  replay_exhausted: outcome(
    'The recorded journal has no further answer.',
    'Ends the run as failed.',
    'Record a longer journal.',
  ),
  invalid_call_arguments: outcome(
    'The model’s arguments do not parse or do not fit the schema.',
    'The call is not run; the model gets an error result.',
    'Nothing: the model is told and may ask again. Where it stays, describe the tool’s arguments better.',
  ),
  unknown_tool: outcome(
    'The model asked for a tool that the session does not have.',
    'The call is not run; the model gets an error result.',
    'Nothing: the model is told. Where the tool is meant, start what serves it and see the persona’s `tools`.',
  ),
  too_many_calls: outcome(
    'The batch has more than 64 calls.',
    'Those beyond get error results.',
    'Nothing: the model is told to ask for fewer. `limits.parallel_calls` bounds how many run at once.',
  ),
  arguments_too_large: outcome(
    'The arguments of the calls of one answer have more than 768 KiB together.',
    'The calls beyond get error results, and their arguments are not kept.',
    'Nothing: the error result asks the model to split the work.',
  ),
  tool_failed: outcome(
    'The tool threw or its server failed.',
    'The model gets an error result.',
    'Nothing: the model is told what the tool said. Where it stays, mend the tool or its server.',
  ),
  tool_result_too_large: outcome(
    'The call ran, and its result has more text than is kept of one.',
    'Drops the result; the model gets an error result that says so.',
    'Have the tool give less: a range, a filter, a file.',
  ),
  result_unknown: outcome(
    'read_result was asked for a reference that no result of this session gave.',
    'The model gets an error result.',
    'Use the reference that stands in the result that was cut.',
  ),
  // Crews
  too_deep: outcome(
    'The session may have no more generations below it: limits.depth of its own or of a session above.',
    'Starts no child; the model gets an error result.',
    'Do the work in this session, or allow more (at most 8).',
  ),
  too_many_children: outcome(
    'As many children of the session are open as may be: limits.children.',
    'Starts no child; the model gets an error result.',
    'Delegate again when one has ended, or allow more (at most 64).',
  ),
  budget_not_left: outcome(
    'What is left of the budget is held by other children, or too little to be shared.',
    'Starts no child; the model gets an error result.',
    'Delegate again when one has ended, or allow more.',
  ),
  too_many_hops: outcome(
    'More than 16 messages between sessions have led to one another: they are likely to go on for ever.',
    'Sends nothing, or takes nothing in; the model that was to send gets an error result.',
    'Let a person, or the end of a run, come between.',
  ),
  handoff_not_listed: outcome(
    'The persona may not hand off to this one: its `handoffs` do not name it.',
    'The session stays with its persona; the model gets an error result that names those whom it may hand off to.',
    'Name the other in `handoffs` of the persona, for sessions that begin from then on.',
  ),
  second_handoff: outcome(
    'Another hand-off of the same answer comes first.',
    'The model gets an error result; the first hand-off is not touched.',
    'Hand off to one persona at a time.',
  ),
  too_many_handoffs: outcome(
    'The session has gone from persona to persona 16 times: they are likely to go on for ever.',
    'The session stays with its persona; the model gets an error result, and the run goes on.',
    'Let a person say something, or tell the personas which of them does what.',
  ),
  child_failed: outcome(
    'A child ended in another way than with an answer; the detail says which.',
    'The model gets an error result with what the child had said; the run goes on.',
    'See the child’s journal, or delegate again.',
  ),
  child_not_started: outcome(
    'The store refuses the command that starts a child.',
    'The model gets an error result.',
    'See the message; after an upgrade of hosts, write the bus’s permissions anew: cox admin auth.',
  ),
  tool_unavailable: outcome(
    'Nobody serves the tool at the moment.',
    'The model gets an error result.',
    'Start what serves it.',
  ),
  tool_interrupted: outcome(
    'A crash left unknown whether the call took effect.',
    'Does not run it again; the model is told.',
    'Declare the tool idempotent if it may run twice.',
  ),
  outside_root: outcome(
    'A path leads out of the session’s root.',
    'The tool refuses; the model gets an error result.',
    'Nothing, or choose another root.',
  ),
  command_timeout: outcome(
    'A command ran longer than its time-out.',
    'Kills its process group; the model gets an error result.',
    'Raise timeout_ms of the call, or let the command do less at once.',
  ),
  hook_threw: outcome(
    'A hook handler threw.',
    'fail_closed refuses the operation, fail_open goes on.',
    'Mend the handler, whose error the journal has; `on_error: fail_open` lets such calls pass meanwhile.',
  ),
  hook_timeout: outcome(
    'A hook handler did not answer in time.',
    'fail_closed refuses the operation, fail_open goes on.',
    'Raise timeout_ms or make it quicker.',
  ),
  persona_unavailable: outcome(
    'A persona is served by processes of its own, and nobody served the version that the session has pinned for as long as its step waits (`limits.wait_for_persona_ms`); or those who ran the step went again and again.',
    'Ends the run; the session stays.',
    'Start an instance with `cox serve personas` and prompt the session again.',
  ),
  hook_unavailable: outcome(
    'Nobody serves a registered hook.',
    'fail_closed refuses the operation, fail_open goes on.',
    'Start the hook service.',
  ),
  hooks_invalid: outcome(
    'The table of hooks has over 256 registrations, or one that is none.',
    'Ends a run that would begin with it; one that is on goes on with the table that it has.',
    'Register fewer, and each id once at a point.',
  ),
  return_unreadable: outcome(
    'A hook returned what JSON cannot hold, or more than 256 KiB.',
    'fail_closed refuses the operation, fail_open goes on.',
    'Return JSON, and less of it.',
  ),
  verdict_invalid: outcome(
    'A hook returned what is no answer: a key that no answer has, or a value that does not fit it.',
    'The operation fails closed, also under fail_open: the hook did answer.',
    'Correct the key that the message names.',
  ),
  verdict_not_allowed: outcome(
    'A hook returned an answer that its point does not take.',
    'The operation fails closed, also under fail_open: the hook did answer.',
    'See which points take it in the message.',
  ),
  suspension_expired: outcome(
    'A suspended session was not woken in time, and its on_timeout is fail.',
    'Ends the run in error.',
    'Send the signal earlier, wait longer, or let it resume instead of fail.',
  ),
  prompt_blocked: outcome(
    'A user_prompt_submit hook blocked the prompt.',
    'Ends the run as user_prompt_submit_blocked.',
    'Change what the reason names and send it again; `cox hook list` lists who decides.',
  ),
  too_many_jobs: outcome(
    '64 jobs that hooks have begun are open already.',
    'Keeps the receipt on the tape and does not wait for the end of its job.',
    'Report the end of jobs as feedback.',
  ),
  too_much_feedback: outcome(
    '64 pieces of inbox feedback wait already.',
    'Counts what comes beyond and tells the model how many, with the last that it is shown.',
    'Give less feedback per turn.',
  ),
  // Ours
  session_failed: exception(
    'An invariant broke while the session was worked on.',
    'Refolds the session, closes what is open, ends the run as failed.',
    'Report it with the journal: `cox session export`.',
  ),
  event_not_accepted: exception(
    'The machine did not take an event of its own journal.',
    'Drops and refolds the session.',
    'Report it with the journal, which `cox session export` writes; other sessions go on.',
  ),
  derivation_unbounded: exception(
    'More events followed from one input than can be right.',
    'Drops and refolds the session.',
    'Report it with the journal, which `cox session export` writes; other sessions go on.',
  ),
  replay_diverged: exception(
    'A recomputed record is not the recorded one.',
    'Stops at that record.',
    'Compare expected and actual; the journal or the program was changed.',
  ),
  machine_version_unknown: exception(
    'A run was made by a version of the turn machine that has decided otherwise than this release’s does.',
    'Replay and fork stop at the record that begins the run: recomputing it would say nothing. A session is refused only where its events lead this release’s machine elsewhere.',
    'Use the release that made it. Sessions still go on with this one, unless a host says otherwise.',
  ),
  export_line_invalid: exception(
    'A line of an exported journal is not a record, bytes that lie apart, or the closing line; it is cut off, too long, or follows the closing line.',
    'Stops at that line; nothing is imported.',
    'Give what `cox session export` has written, and export it again where it was cut off or changed.',
  ),
  export_end_mismatch: exception(
    'The closing line of an exported journal does not match its records: the file was cut or changed.',
    'Stops at the closing line; nothing is imported.',
    'Export the session again, or use an unchanged copy of the file.',
  ),
  import_unfinished: exception(
    'The session is being imported, or its import was broken off.',
    'Refuses its commands, and leaves its journal alone.',
    'Wait, or import it again: that goes on where it broke off.',
  ),
  record_unreadable: exception(
    'A record fits no shape ever released, or the stream reports it and no replica of the store serves it.',
    'Stops at that record; lists mark the session.',
    'Use the release that wrote it, or a newer one; `cox doctor` names the damaged replica where none serves it.',
  ),
  chain_broken: exception(
    'A record’s prev_hash is not the hash of the record before.',
    'Stops at that record.',
    'The journal was changed or is incomplete.',
  ),
  journal_conflict: exception(
    'Another host wrote to this session.',
    'Drops the session without a trace of its own; the other host goes on.',
    'Nothing: the other host has the session, and this one has left it.',
  ),
  journal_unavailable: exception(
    'An append stayed without an answer for too long.',
    'Stops the session on this host; it is recovered when the journal is back.',
    'Check the NATS server.',
  ),
  record_too_large: exception(
    'A record is over 512 KiB even with its large fields stored apart.',
    'Fails the session.',
    'Bound what tools return (`max_output`) and what is sent at once; report it with the journal where neither is large.',
  ),
  blob_missing: exception(
    'A record refers to bytes that neither the object store nor the exported file holds.',
    'Stops at that record.',
    'For a file: export the session again without `--records-only`, or name the bus that holds the bytes: `--nats URL`. Else restore the object store.',
  ),
  // Hook services and manifests
  hook_module_invalid: exception(
    'A module of handlers cannot be loaded, or declares what no registration may be.',
    'Stops, naming file and line where it can; a service that runs already keeps the version before.',
    'Correct the file at the place that the message names; a service that runs goes on with the version before.',
  ),
  manifest_invalid: exception(
    'coxswain.yaml cannot be read, says what it must not, or names a handler that is not there.',
    'Stops, naming file, line and column.',
    'Correct the line that the message names, or leave the manifest out: `--manifest none`.',
  ),
  folder_not_trusted: exception(
    'The current folder brings code or permissions that the user has not trusted, and no terminal can ask.',
    'Starts nothing, and runs no code of the folder.',
    'Look at the file that the message names, then run `cox trust` in the folder; or name it: `--manifest FILE`, `--persona ./FILE`.',
  ),
  policy_invalid: exception(
    'The policy file of a host cannot be read, or has a member or value that no policy has.',
    'Stops, naming file, line and column.',
    'Correct the line that the message names; the guide “Policy of a host” has every member.',
  ),
  hook_id_taken: exception(
    'Another hook service has announced a hook of this id.',
    'Stops before anything is announced.',
    'Give the hook another id, or the service another --name.',
  ),
  hook_service_unknown: exception(
    'No hook service of this name is registered.',
    'Changes nothing.',
    'Use a name that `cox hook list` lists, and the tenant that it is of.',
  ),
  hook_service_serving: exception(
    'The hook service is to be removed from the registry, and instances of it serve.',
    'Changes nothing: they would be asked no more without a word.',
    'Stop its instances first, which `cox hook list` lists; then remove it.',
  ),
  // Personas and tools on the bus
  persona_paused: exception('A persona is to be paused, and is already.', 'Changes nothing.', 'Nothing need be done.'),
  persona_not_paused: exception(
    'A persona is to go on, and is not paused.',
    'Changes nothing.',
    'Nothing: it takes steps already; `cox persona list --served` says what each persona does.',
  ),
  persona_not_registered: exception(
    'No persona of this name is announced.',
    'Changes nothing.',
    'Use a name that `cox persona list --served` lists, and the tenant that it is of.',
  ),
  persona_serving: exception(
    'The announcement of a persona is to be removed, and instances serve it.',
    'Changes nothing: the next of them to start would announce it again.',
    'Stop its instances first, which `cox persona list --served` lists; then remove it.',
  ),
  persona_module_invalid: exception(
    'A module of a persona cannot be loaded, its default export is no persona, or its export `tools` no list of tools.',
    'Stops, naming file and line where it can.',
    'Correct the file at the place that the message names.',
  ),
  persona_not_servable: exception(
    'A persona that is to be served is not valid, is too large to be announced, or has a tool that it cannot have.',
    'Announces nothing.',
    'Correct the definition as the message says.',
  ),
  persona_version_taken: exception(
    'A persona that is to be served has a version that stands for another definition already.',
    'Announces nothing: a session that has pinned the version would be answered as another persona.',
    'Give it another version, or none; or take the announcement back with `cox persona remove`.',
  ),
  tool_not_registered: exception(
    'No tool of this name is announced.',
    'Changes nothing.',
    'Use a name that `cox tool list` lists, and the tenant that it is of.',
  ),
  tool_serving: exception(
    'The announcement of a tool is to be removed, and instances serve it.',
    'Changes nothing: the next of them to start would announce it again.',
    'Stop its instances first, which `cox tool list` lists; then remove it.',
  ),
  tool_module_invalid: exception(
    'A module of tools cannot be loaded, or its default export is no tool and no list of tools.',
    'Stops, naming file and line where it can; a service that runs already keeps the version before.',
    'Correct the file at the place that the message names: `export default defineTool({ … })`.',
  ),
  persona_invalid: exception(
    'A persona has a key that there is not, or a value that it cannot have.',
    'Starts nothing.',
    'Correct it as the message says, which names the path and what may have been meant.',
  ),
  tool_definition_invalid: exception(
    'A tool that is to be served on the bus has a name, a schema or a setting that it cannot have.',
    'Announces nothing; a tool that is served already stays as it was.',
    'Correct the definition as the message says.',
  ),
  tool_crashed: exception(
    'Code of a served tool threw where nobody could catch it: in a timer, or in the handler of an event.',
    'Ends the process with 1: calls under way are in doubt, and hosts are told so at once.',
    'Catch it in the tool; its log has the stack. Have the process started again.',
  ),
  tool_not_announced: exception(
    'Others announced the same tool again and again, while this process tried to.',
    'Serves nothing.',
    'Have processes that serve one tool announce the same of it.',
  ),
  // Starting up
  prices_unreadable: exception(
    'The file that COX_PRICES names cannot be read, or is no table of prices.',
    'Stops, naming what is wrong.',
    'Correct the file: prices: [{model, input, output, cached_input}].',
  ),
  nats_server_not_found: exception(
    'No nats-server could be found or fetched.',
    'Stops and lists what was tried.',
    'Install nats-server 2.12 or newer, or set NATS_URL.',
  ),
  nats_server_too_old: exception(
    'The server is older than 2.12 and would silently ignore parts of the configuration.',
    'Stops.',
    'Install nats-server 2.12 or newer, or leave COX_NATS_SERVER out: one is found or fetched.',
  ),
  not_permitted: exception(
    'The user that this process is let in as may not send this command, or ask this of the bus.',
    'Stops; a command was not stored.',
    'Use the key of a role that may: docs/guides/security.md lists them.',
  ),
  streams_missing: exception(
    'A stream is missing, and the user that this process is let in as may not make streams.',
    'Stops.',
    'Run cox admin streams with the key of an admin.',
  ),
  seed_file_unusable: exception(
    'The file that --nkey or NATS_NKEY names cannot be read, or holds no seed of a user.',
    'Stops.',
    'Name a file that cox admin auth has written.',
  ),
  auth_out_exists: exception(
    'The folder that cox admin auth is to write is there already.',
    'Stops; nothing is overwritten.',
    'Name another folder, or change the one that is there with --add and --remove: keys that are in use would be lost.',
  ),
  keyring_unreadable: exception(
    'The folder whose keys are to change has no keys.json that cox admin auth could have written.',
    'Stops; nothing is changed.',
    'Name a folder that cox admin auth --out has written.',
  ),
  key_exists: exception(
    'A key of this role and name is there already.',
    'Stops; nothing is changed.',
    'Give the new key another name: --add operator=alice.',
  ),
  key_not_found: exception(
    'There is no key of this role and name.',
    'Stops; nothing is changed.',
    'Name one of those that the message lists.',
  ),
  key_is_last: exception(
    'The key is the last of hosts or of admins: nobody could serve the bus, or look after it.',
    'Stops; nothing is changed.',
    'Add another key of the role first.',
  ),
  tenant_not_found: exception(
    'The folder of keys has no account for this tenant, or the bus no session of a tenant that --keep names.',
    'Stops; nothing is changed or deleted.',
    'Name one of those that the message lists, or add it: `cox admin auth --add tenant=NAME`.',
  ),
  tenant_exists: exception(
    'The folder of keys has this tenant already.',
    'Stops; nothing is changed.',
    'Give another name; --add TENANT/ROLE=NAME adds a key to a tenant.',
  ),
  tenant_is_last: exception(
    'The tenant is the only one of the folder of keys.',
    'Stops; nothing is changed.',
    'Add another tenant first.',
  ),
  auth_out_unusable: exception(
    'The folder of keys cannot be made or written.',
    'Stops; nothing is written.',
    'Name another folder with --out.',
  ),
  answer_unreadable: exception(
    'What answered a query is no host of this version.',
    'Stops.',
    'Upgrade whichever is older; see who listens on the subjects of queries.',
  ),
  nats_server_start_failed: exception(
    'The child server did not start.',
    'Stops, quoting its log.',
    'See the log, whose end the message quotes; `cox doctor` looks at folder, port and server.',
  ),
  client_closed: exception(
    'The program closed the client, before the call or during it.',
    'Ends loops; a command that was sent before stays sent.',
    'Close the client last; connect again to go on.',
  ),
  invalid_option: exception(
    'An option of a call is missing, invalid or contradicts another one.',
    'Sends nothing.',
    'Correct the option that the message names.',
  ),
  aborted: exception(
    'The signal that the caller gave has aborted.',
    'Stops waiting; a command that was sent before stays sent.',
    'Nothing: the program asked for it. The signal’s reason is the `cause`.',
  ),
  gateway_unreachable: exception(
    'No gateway answers at the address, or what stands before it finds none.',
    'Stops; what only reads has asked for ten seconds before, and what is followed is asked for as long as it takes.',
    'Check the address and the network. A page of another origin needs `--allow-origin` (CORS). Try again after a restart of the gateway.',
  ),
  transport_unavailable: exception(
    'A client for browsers was told to connect to a bus.',
    'Connects to nothing.',
    'Give `gateway` and `token`; on a server, import the client for Node.',
  ),
  nats_unreachable: exception(
    'No NATS server answers at the address, or its store does not: it chooses a leader, or too few servers of the cluster live.',
    'Stops; what only reads has asked for ten seconds before.',
    'Check the address, the token and the servers: `cox doctor`; try again where a server has just ended.',
  ),
  too_few_servers: exception(
    'More copies of the streams were asked for than the bus has servers for.',
    'Stops; what is there stays.',
    'Ask for as many copies as the cluster has servers, or add servers first.',
  ),
  copies_incomplete: exception(
    'The copies of the streams that were asked for are not all there after two minutes.',
    'Stops waiting; the servers go on copying.',
    'See with `cox doctor` how far they are, and whether all servers are up.',
  ),
  rewrite_stopped: exception(
    'cox admin streams --rewrite cannot take its next step: a message cannot be read from a copy, or a server is not reachable.',
    'Stops before it removes a copy, and restores the number of copies; readable messages stay readable.',
    'Start all servers, check them with `cox doctor`, and run it again.',
  ),
  nats_request_refused: exception(
    'The NATS server answered with an error that was not expected.',
    'Stops what asked; the message quotes the server.',
    'Check permissions, limits and disk space of the server.',
  ),
  fetch_checksum_mismatch: exception(
    'A fetched server does not have the published checksum, or not the one that this version of Coxswain pins.',
    'Throws it away.',
    'Try again; if it stays, do not trust the source: install nats-server yourself and name it in COX_NATS_SERVER.',
  ),
  nats_server_unusable: exception(
    'The named server binary is missing, not executable, or built for another system.',
    'Stops.',
    'Correct COX_NATS_SERVER, or leave it out: a server is found or fetched.',
  ),
  nats_server_stop_failed: exception(
    'The child server survived even SIGKILL.',
    'Its state folder stays locked.',
    'See what its disk is waiting for.',
  ),
  nats_url_invalid: exception(
    'NATS_URL cannot be read, or its addresses carry different credentials.',
    'Stops.',
    'Write it as nats://[user:password@ or token@]host:port, several with commas and the same credentials.',
  ),
  server_option_invalid: exception(
    'An option of the embedded server is not allowed.',
    'Stops, naming it.',
    'Use a loopback address, a port up to 65535, a token of 16 or more letters, digits, - and _.',
  ),
  connection_file_invalid: exception(
    'connection.json was written by something else.',
    'Stops.',
    'Delete it and start again.',
  ),
  bus_not_found: exception(
    'A program called connect() without options, and nothing names a bus or a gateway.',
    'Connects to nothing.',
    'Start `cox up`; or set NATS_URL, or COX_GATEWAY_URL and COX_GATEWAY_TOKEN; or use a context; or give connect() its options.',
  ),
  fetch_setting_invalid: exception('COX_FETCH is neither never nor auto.', 'Stops.', 'Use one of them.'),
  fetch_failed: exception(
    'A source of the server could not be reached or gave something else.',
    'Tries the next source.',
    'See the list in nats_server_not_found.',
  ),
  command_failed: exception(
    'A program that fetching needs has failed.',
    'Tries the next source.',
    'See the list in nats_server_not_found.',
  ),
  // The command line and the client
  usage: exception(
    'The command line is wrong.',
    'Starts nothing and ends with 2, saying where.',
    'Correct it; every command has --help.',
  ),
  not_found: exception(
    'A call is to be cancelled, none is named, and none is open.',
    'Sends nothing.',
    'Look at the session: `cox session show`.',
  ),
  timeout: exception(
    'What was waited for did not come in time.',
    'Stops waiting; what was sent stays sent.',
    'Look at the session: `cox session show`.',
  ),
  receipt_timeout: exception(
    'The command is stored, but no host reported in time what became of it, or recorded its outcome.',
    'Stops waiting; the command may still take effect.',
    'Send it again under the same id, or see whether a host runs: `cox doctor`.',
  ),
  command_not_stored: exception(
    'The bus did not acknowledge the command, which was offered to it for fifteen seconds.',
    'Stops; it may or may not be stored.',
    'Send it again under the same id, which is safe.',
  ),
  bus_not_prepared: exception(
    'No session host has ever run on this bus.',
    'Stops.',
    'Run a host on it: `cox up --nats URL`.',
  ),
  query_failed: exception(
    'A host could not answer a question about a session, or fell silent over it.',
    'Logs why; changes nothing.',
    'Ask again; see the log of the hosts.',
  ),
  too_many_queries: exception(
    'The host that was asked is answering as many questions as it may at once.',
    'Answers those first.',
    'Ask again in a moment.',
  ),
  no_host: exception(
    'No session host answers on this bus at the moment.',
    'Stops; what is stored waits for one.',
    'Run a host on it: `cox up --nats URL`.',
  ),
  not_left_running: exception(
    'The instance that was to go on in the background did not come up.',
    'Ends with 1; the sessions are kept.',
    'See the log that the message names.',
  ),
  nats_server_ended: exception(
    'The nats-server under `cox up` ended by itself, and its restarts failed.',
    'Ends with 1, quoting the reason; the sessions are kept.',
    'See the log, and start `cox up` again.',
  ),
  console_not_built: exception(
    'This installation has no console, so there is no viewer to show.',
    'Serves nothing.',
    'Build it (`npm run prepare`), or read the inspection as JSON lines: `cox session inspect --json`.',
  ),
  streams_gone: exception(
    'The streams of the sessions were deleted under a host that lives.',
    'Stops the host, and `cox up` with 1.',
    'Start it again, which makes them anew; restore a backup first where the sessions are needed.',
  ),
  revoked: outcome(
    'A command was taken back before it was delivered.',
    'Never delivers it.',
    'Nothing; send it again under a new id if it was meant.',
  ),
  rejected: outcome(
    'The session refused a command and gave no code.',
    'Changes nothing.',
    'See its journal: `cox session export`.',
  ),
  internal: exception(
    'Something failed that has no code.',
    'Stops and prints its stack.',
    'Report it with what was typed, the release (`cox --version`) and the stack.',
  ),
  stage_not_reached: exception(
    'The command did not get as far as --wait asked: its run has ended, or nothing runs the session.',
    'Keeps it for the next run, or for whatever runs the session next.',
    'Nothing, or go on with the session as the message says.',
  ),
  // The steering file
  steering_file_unusable: exception(
    'The steering file is no file, or cannot be read, moved or written beside.',
    'Says so once and looks again.',
    'Put an ordinary file there, in a folder that may be written to.',
  ),
  steering_file_held: exception(
    'Another process reads this steering file already.',
    'Leaves it to that one, and takes over when it has gone.',
    'Nothing, or give another --steering-file.',
  ),
  steering_not_sent: exception(
    'The bus did not take a line of the steering file.',
    'Leaves it in the file and tries again.',
    'Check the bus: `cox doctor`.',
  ),
  state_dir_unusable: exception(
    'The state folder cannot be made or written, or is no folder.',
    'Stops, saying why.',
    'Give another --state-dir, or make the folder yours and writable, with room on its disk; `cox doctor` tries it.',
  ),
  state_dir_in_use: exception(
    'Another instance uses this state folder; or a command that has found none, such as `cox run`, does while it works, and `cox up` has waited for that as long as `--wait-for-folder` says.',
    'Stops, naming it and its process id.',
    'Wait for the end of the command, or stop the other one; or give another --state-dir.',
  ),
  up_not_stopped: exception(
    '`cox down` has asked `cox up` to stop, and the process has not ended in time.',
    'Leaves the process alone.',
    'Look at the log with `cox logs`; then end the process by its id.',
  ),
  contexts_invalid: exception(
    'The file of contexts cannot be read, has an invalid member, or can be changed by other users.',
    'Uses no context and changes nothing.',
    'Correct the member that the message names, or take the write permission from other users; or delete the file and add the contexts again.',
  ),
  context_not_found: exception(
    'No context has this name.',
    'Does nothing.',
    'Use a name that `cox context list` prints, or add the context with `cox context add`.',
  ),
  context_exists: exception(
    'A context of this name is stored already.',
    'Changes nothing.',
    'Choose another name, or replace the context with `--force`.',
  ),
  command_socket_unusable: exception(
    'The socket of a command runner is served by another process, or cannot be made.',
    'Stops, with the reason.',
    'Stop the other process, or give another --socket in an existing folder that this user may write.',
  ),
  port_in_use: exception(
    'Something listens already at the port that was asked for.',
    'Stops, naming what was to listen there, and the port.',
    'Stop what listens there, or give another port where this one was given (--port, --gateway-port, --listen, --metrics-port).',
  ),
  stream_config_mismatch: exception(
    'The server did not keep a stream’s configuration as it was sent.',
    'Stops, naming the member and the server’s version.',
    'Upgrade the server, or mend the stream.',
  ),
} as const satisfies { readonly [Kind in ErrorKind as ErrorCodeOf<Kind>]: CatalogueEntry<Kind> };
