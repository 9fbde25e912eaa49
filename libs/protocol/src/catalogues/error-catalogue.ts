/**
 * The texts of all error and rejection codes. `docs/reference/errors.md` is generated from them. `error-codes.ts` lists
 * the codes and their kinds.
 */
import type { ErrorCodeOf, ErrorKind } from './error-codes.ts';

/** One entry: the meaning, the reaction of the runtime, and the remedy of the caller. */
export interface CatalogueEntry<Kind extends ErrorKind = ErrorKind> {
  readonly kind: Kind;
  readonly meaning: string;
  readonly runtime: string;
  readonly caller: string;
}

const rejection = (meaning: string, caller: string): CatalogueEntry<'rejection'> => ({
  kind: 'rejection',
  meaning,
  runtime: 'Sends the receipt, and records the rejection within the session’s quota of records. Changes nothing else.',
  caller,
});
/** A request that the gateway rejects. It never becomes a command, and no journal contains it. */
const refusal = (meaning: string, caller: string): CatalogueEntry<'refusal'> => ({
  kind: 'refusal',
  meaning,
  runtime: 'The gateway answers with a problem document. It sends nothing to the session.',
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
    'Unknown command: the last token of the subject is not a known verb.',
    'Use the verb that the message suggests.',
  ),
  invalid_json: rejection(
    'The body starts with { and is not valid JSON, an object repeats a member, or the verb accepts no plain text.',
    'Send valid JSON without repeated members. Plain text must not start with {.',
  ),
  invalid_utf8: rejection(
    'The body is not valid UTF-8.',
    'Send the body as UTF-8. Convert the output of tools that use another encoding.',
  ),
  invalid_unicode: rejection(
    'A text or a key of the body contains a lone surrogate: half of a UTF-16 pair, such as the JSON text "\\ud800".',
    'Correct the field that the message names. Cut texts between code points, or replace the surrogate by U+FFFD.',
  ),
  invalid_id: rejection(
    'A session, tenant or command id contains characters other than A-Z a-z 0-9 _ -, or has more than 64.',
    'Use an id of 1 to 64 of these characters.',
  ),
  body_too_large: rejection(
    'The body is larger than 256 KiB.',
    'Send less, or put the content where a tool can read it.',
  ),
  unknown_field: rejection(
    'The body has a field, or the URL a query parameter, that the request does not define.',
    'Remove it. The message lists the valid names.',
  ),
  invalid_field: rejection('A field has an invalid value.', 'Correct the field that the message names.'),
  invalid_mode: rejection(
    'The steering mode is unknown.',
    'Use interrupt_immediate, finish_step or audit_only, or omit mode.',
  ),
  empty_body: rejection(
    'The text is empty.',
    'Send a text with at least one letter. To end a run without a message, send `cancel`.',
  ),
  not_yet_available: rejection(
    'This release reserves the name and does not implement it yet.',
    'Omit it, or upgrade to a release that implements it; see the changelog.',
  ),
  receipt_subject_refused: rejection(
    'The receipt subject is not an inbox: `_INBOX.…`, or `_INBOX_<name>.…`, of at most 256 characters.',
    'Subscribe to an inbox and use it as the receipt subject.',
  ),
  unknown_hook_point: rejection(
    'A hook registration names an unknown hook point.',
    'Use a point of docs/reference/hooks.md, in snake_case or PascalCase.',
  ),
  invalid_pattern: rejection(
    'The pattern of a hook is neither a glob nor a condition. Or its regular expression is invalid or too large, or it names an unknown member of the payload.',
    'Use a glob, or path == "value", path != "value", path =~ "regex" (RE2). docs/reference/hooks.md lists the members of each payload.',
  ),
  job_unknown: rejection(
    'The session has no open job of this id: no hook started it, or it has ended.',
    'Report a job under the id of its receipt, and report its end once.',
  ),
  internal_subject: rejection(
    'The verb is internal: only hosts and workers may use it.',
    'Use a verb of the command table in docs/reference/subjects.md.',
  ),
  // The gateway
  route_not_found: refusal(
    'The gateway has no route for this path.',
    'Use a route of docs/reference/http.md. The gateway lists its own routes at /openapi.json.',
  ),
  method_not_allowed: refusal(
    'The route does not support this HTTP method.',
    'Use a method that the response header `allow` lists.',
  ),
  unsupported_media_type: refusal(
    'The content type of the body is neither JSON nor, on routes that accept it, plain text.',
    'Send JSON with the header `content-type: application/json`.',
  ),
  request_unreadable: refusal(
    'The request is not valid HTTP, or it repeats a header that may occur once.',
    'Use HTTP/1.1, without TLS on a direct connection to the gateway. Send host, authorization and content-type once.',
  ),
  request_closed: refusal(
    'The client closed the connection before the response.',
    'Send the request again with the same `command_id` or idempotency key: the command is applied once.',
  ),
  expectation_failed: refusal(
    'The request has an `expect` header that the gateway does not support.',
    'Omit the header `expect`, or send `100-continue`.',
  ),
  headers_too_large: refusal('The request headers are larger than 16 KiB.', 'Send fewer or shorter headers.'),
  request_too_slow: refusal(
    'The request did not arrive completely within its time limit.',
    'Send it again, faster or in smaller parts.',
  ),
  upgrade_required: refusal('The route is a WebSocket endpoint.', 'Connect with a WebSocket client.'),
  unauthorized: refusal(
    'Authentication failed: the request has no token, or its token is unknown, expired or invalid.',
    'Send `authorization: Bearer TOKEN` with a valid token; `cox admin token add` creates one.',
  ),
  scope_missing: refusal(
    'Authorization failed: the token lacks the scope that the message names.',
    'Use a token that has this scope.',
  ),
  host_not_allowed: refusal(
    'The `host` header names an address that is not configured for this gateway (protection against DNS rebinding).',
    'Use a configured address, or add this one with --public-url.',
  ),
  origin_not_allowed: refusal(
    'The request comes from a web page of another origin (CORS).',
    'If the site is yours, allow it with --allow-origin.',
  ),
  rate_limited: refusal(
    'The token, or the address of a request without a token, exceeds the rate limit.',
    'Wait for the number of seconds in the response header `retry-after`.',
  ),
  too_many_watchers: refusal(
    'The limit of connections that follow sessions is reached: for the session, the token or the gateway.',
    'Close some connections, or run another gateway.',
  ),
  command_id_reused: refusal(
    'Another command of the session has this `command_id`. That command stays valid; this one was rejected.',
    'Use a new `command_id` for a new command, or omit it.',
  ),
  idempotency_key_reused: refusal('Another request used this idempotency key.', 'Use a new key for a new request.'),
  idempotency_key_undecided: refusal(
    'The first command with this idempotency key is not recorded yet, so the gateway could not compare the new command with it in time.',
    'Send the request again after a moment. If the error persists, check for a running host with `cox doctor`.',
  ),
  gateway_stopping: exception(
    'The gateway is shutting down.',
    'Finishes its requests and accepts no new ones.',
    'Connect again: to another gateway, or to this one after its restart.',
  ),
  gateway_busy: exception(
    'The gateway runs the maximum number of concurrent reads, or holds the maximum of request bodies, or of responses that clients have not read.',
    'Rejects the request. No command was sent.',
    'Send the request again after a moment.',
  ),
  auth_unavailable: exception(
    'The gateway cannot fetch the keys that verify JSON Web Tokens.',
    'Rejects every JSON Web Token until it has the keys.',
    'Check that the address of --jwks responds.',
  ),
  tokens_unreadable: exception(
    'The token file or the JWK Set cannot be read or is invalid.',
    'Does not start. A running gateway keeps the contents that it read before.',
    'Correct the file, or write a new one with `cox admin token add`.',
  ),
  gateway_option_invalid: exception(
    'An option of the gateway is invalid.',
    'Does not start the gateway.',
    'Correct the option that the message names.',
  ),
  token_exists: exception(
    'The token file already has a token of this name and tenant.',
    'Changes nothing.',
    'Use another name, or remove the existing token first.',
  ),
  token_not_found: exception(
    'The token file has no token of this name, or none of the given tenant.',
    'Changes nothing.',
    'Use a name and a tenant that `cox admin token list` prints.',
  ),
  // Commands that do not fit the session
  session_not_found: rejection(
    'The tenant has no session of this id.',
    'Check the id; `cox session list` lists the sessions.',
  ),
  record_not_there: refusal(
    'The journal ends before the requested record.',
    'Request an existing record; the message names the newest. A follower may request the next record and wait for it.',
  ),
  session_exists: rejection(
    'A session of this id exists and has ended.',
    'Send `prompt` to continue it, or use another id.',
  ),
  session_deleted: {
    kind: 'rejection',
    meaning: 'The session was deleted. The message says when, by whom and why. Its id is never used again.',
    runtime: 'The host sends the receipt and records nothing: the journal no longer exists.',
    caller: 'Use another id. An export of the session can be imported with --as.',
  },
  session_being_copied: {
    kind: 'rejection',
    meaning: 'A deletion waits for a fork that is still copying the records of the session.',
    runtime:
      'The session is marked as deleted: it accepts no command and no further fork. The fork is completed; the records are not yet purged.',
    caller:
      'When the fork is complete, run `cox session delete` again or `cox admin retention`. A running retention job needs no command: it tries again by itself.',
  },
  session_busy: rejection(
    'The session runs, waits or sleeps. It accepts no second prompt and cannot be deleted.',
    'Steer it, queue a follow-up, or wait for its end. Cancel its run before you delete it.',
  ),
  message_id_reused: rejection(
    'The session was started under this `message_id` with another body. The first start stays valid.',
    'Use a new `message_id` for a new start, or send the first body again.',
  ),
  command_too_old: rejection(
    'The command id is older than the ids that the session remembers, so a duplicate cannot be detected.',
    'Send the command under a new id.',
  ),
  not_pending: rejection(
    'No approval of this call is pending.',
    'List the pending approvals with `cox approval list`.',
  ),
  call_not_open: rejection(
    'The tool call expects no call_outcome or child report: it has ended, never started, or its tool is not long_running.',
    'If the tool sends outcomes later, declare it long-running. Otherwise nothing to do: the host dropped the outcome, and the journal has the rejection.',
  ),
  stale_epoch: rejection(
    'The fencing token is out of date. A host rejects the outcome of a tool call (`call_outcome`) for an earlier or unknown attempt. A worker rejects the call of a host that lost the session to another host.',
    'Nothing to do: the newest attempt reports its own outcome, and the new host continues the session.',
  ),
  call_unknown: rejection('The current turn of the session has no such tool call.', 'Check the id of the call.'),
  already_decided: rejection(
    'The approval was decided before. The first decision stays valid.',
    'Nothing to do; the message names the person who decided.',
  ),
  edited_call_denied: rejection(
    'A permission rule or a `PreToolUse` hook denies the call with the edited arguments. The call still waits for approval.',
    'Decide again: approve other arguments, approve the original arguments, or deny. The message and `detail` name the rule or the hook.',
  ),
  edit_pending: rejection(
    'Hooks are still evaluating an earlier edit of this call, or the registered hooks changed during the evaluation.',
    'Decide again after a moment. A decision without edited arguments is accepted at once.',
  ),
  not_rememberable: rejection(
    'This decision cannot be remembered: the arguments are too large, or the approval is about an unknown outcome.',
    'Decide this call without `remember`. To decide later calls automatically, add a permission rule to the persona.',
  ),
  too_many_rules: rejection(
    'The session or its persona already has 128 remembered rules, the maximum.',
    'Remove some: `cox approval rules` lists them, and `--remove RULE` removes one.',
  ),
  notice_failed: outcome(
    'The notification of a pending approval could not be delivered to the webhook.',
    'Retries several times, then records the failure. The approval stays pending.',
    'Make sure that the address answers 2xx. `cox approval list` lists the pending approvals.',
  ),
  not_running: rejection('The session is not running.', 'Nothing to do, or send a prompt to start a run.'),
  already_cancelled: rejection(
    'The run was cancelled before.',
    'Nothing to do: the run has ended. Send a prompt to continue the session.',
  ),
  not_suspended: rejection(
    'The session is not suspended.',
    'Nothing to do: it runs or has ended. `cox session show` prints its state.',
  ),
  already_suspended: rejection(
    'The session is already suspended.',
    'Resume it with `cox session resume` to continue it.',
  ),
  already_delivered: rejection(
    'The message that the command names was delivered to the model before.',
    'Send another steering message: delivered messages cannot be withdrawn. A reminder in force can be revoked.',
  ),
  already_revoked: rejection(
    'The message that the command names was revoked, replaced by a newer message with the same dedupe key, or blocked by a hook.',
    'Nothing to do: it will not be delivered. To deliver it, send it again under a new id.',
  ),
  unknown_command_id: rejection(
    'The session knows no steering message, reminder or follow-up of this id, or no longer remembers it.',
    'Use an id that `cox message list` prints.',
  ),
  too_many_reminders: rejection(
    'The session has the maximum of queued and active reminders: 256, or 1 MiB in total.',
    'Withdraw some with `cox message withdraw`, or give them a dedupe_key or ttl_turns.',
  ),
  too_many_signals: rejection(
    'The session already holds 64 signals that no suspension has waited for, the maximum.',
    'Send only signals that the session waits for.',
  ),
  too_many_pending: rejection(
    'The session has the maximum of 1,000 queued messages.',
    'Wait until some are delivered, or revoke some.',
  ),
  pending_full: rejection(
    'The queued steering messages, reminders and follow-ups of the session would exceed 1 MiB in total.',
    'Wait until some are delivered, or revoke some. Put a long text into a file and name the file.',
  ),
  quota_exceeded: {
    kind: 'rejection',
    meaning: 'The tenant or the sender has exhausted a quota of the host. The message names the quota.',
    runtime: 'The host sends the receipt and counts the rejection. It records nothing and does not remember the id.',
    caller: 'Send the command again under the same id after the time in the message, or have the quota raised.',
  },
  invalid_arguments: rejection(
    'The edited arguments do not match the schema of the tool.',
    'Correct the arguments that the message names.',
  ),
  // Forks
  fork_origin_not_found: rejection(
    'The session to fork does not exist in this tenant.',
    'Check the id; `cox session list` lists the sessions.',
  ),
  fork_record_not_found: rejection(
    'The session to fork has fewer records than the requested number.',
    'Fork at an existing record; the message gives the number of records.',
  ),
  fork_too_long: rejection(
    'The fork would have to copy more than 10,000 records, the maximum.',
    'Fork at an earlier record.',
  ),
  fork_change_misfit: rejection(
    'The change does not apply to the record at which the session is forked, or the named hook gave no answer there.',
    'Read in the message what the record contains. Fork at another record, or change something else.',
  ),
  command_id_taken: rejection(
    'The session to fork has already received a command of this id, and its fork inherits that command.',
    'Send the fork command under another id.',
  ),
  // External failures
  fork_origin_gone: outcome(
    'The journal of the origin was deleted or changed during the fork.',
    'Keeps the copied records and ends the run as failed.',
    'Fork again if the origin still exists. Otherwise continue from the copied records with a prompt.',
  ),
  persona_not_found: outcome(
    'The host knows no persona of this name.',
    'Ends the run as failed.',
    'Check the name, or send the whole definition.',
  ),
  mode_not_found: outcome(
    'The persona has no mode of this name.',
    'Ends the run as failed.',
    'Use a mode that the message lists, or none.',
  ),
  skills_unavailable: outcome(
    'The persona has skills, and the host has no load_skill tool with which a model could read them.',
    'Ends the run as failed before the model call.',
    'Run a host with the built-in tools, or add createLoadSkillTool() to your own tools.',
  ),
  skill_unknown: outcome(
    'The model asked load_skill for a skill, or a file of a skill, that the persona does not have.',
    'The model gets an error result that lists the existing names.',
    'Use a name from the index of skills, and a path that the skill lists.',
  ),
  model_not_given: outcome(
    'Neither the start nor the persona names a model.',
    'Rejects a start before the session exists. Ends a later run as failed.',
    'Give a model as provider/name.',
  ),
  provider_unknown: outcome(
    'The host has no adapter for this model provider.',
    'Rejects a start before the session exists. Ends a later run as failed.',
    'Use a provider that the message lists.',
  ),
  model_key_missing: outcome(
    'The host has no API key for the model provider.',
    'Rejects a start before the session exists. Ends a later run as failed.',
    'Set the variable that the message names in the environment of the host: `cox up`, `cox serve sessions` or this shell. Then restart the host.',
  ),
  not_allowed_by_policy: {
    kind: 'rejection',
    meaning:
      'The policy of the host does not allow a value of the request. The message names the field of the request and the line of the policy.',
    runtime:
      'The host rejects the command before any effect, and logs the rejection. If an imported, forked or older session names the value, its run ends as failed.',
    caller:
      'Use a value that the message lists, or ask the operator of the host to add it to the policy. See the guide “Policy of a host”.',
  },
  secret_in_request: rejection(
    'The request contains a secret: a URL with a user name, password or key, or a credential in a header or variable of MCP servers.',
    'Name a variable of the host instead, and allow it in the `variables` of the host’s policy. The secret was not stored.',
  ),
  root_not_local: outcome(
    'The root folder does not exist on this host, or is outside the folders that the host allows.',
    'Ends the run as failed.',
    'Start the session on the host that has the folder, or use another root. `roots` in the policy of the host lists the allowed folders.',
  ),
  mcp_server_failed: outcome(
    'An MCP server did not start or did not respond.',
    'Ends the run as failed during provisioning.',
    'Check the command of the server and its stderr, which the message quotes.',
  ),
  price_unknown: outcome(
    'The run has a limit in USD, and the price of its model is unknown.',
    'Ends the run as failed before the model call.',
    'Add the model to a price file and name the file in COX_PRICES, or limit tokens instead.',
  ),
  output_schema_invalid: outcome(
    'The output schema of the start or the persona is not a valid JSON Schema.',
    'Ends the run as failed before the model call.',
    'Correct the schema at the place that the message names.',
  ),
  output_invalid: outcome(
    'The final answer does not match the output schema, and the repair turns (`limits.output_repairs`) are exhausted. In a program: the output does not pass a check of its Zod schema.',
    'Ends the run as failed. The journal contains the answers, and the problems of each in output_rejected.',
    'Read the problems in the message. Simplify the schema, describe its members, or use a stronger model.',
  ),
  step_denied: outcome(
    'A PreStep or PostStep hook denied a step, or failed and fails closed.',
    'The step has failed: its error_boundary decides whether the run fails, continues or waits for a person.',
    'Read the message, which names the hook and its reason.',
  ),
  step_budget_exceeded: outcome(
    'A step exhausted its max_tokens or max_usd before it produced an answer.',
    'The step has failed: its error_boundary decides whether the run ends as budget_exceeded, continues or waits for a person.',
    'Raise the limit of the step, or give the step less work.',
  ),
  predicate_unknown: outcome(
    'The persona’s stop_when names a predicate that is not registered with the host.',
    'Ends the run as failed before the model call.',
    'Register the predicate with the host, or use one that the message lists.',
  ),
  predicate_failed: outcome(
    'A predicate of a stop condition threw, timed out after 5 s, returned no boolean, or is not registered any longer.',
    'Treats the condition as false and records the failure. The run continues within its limits.',
    'Fix the predicate: the message has its name and its failure.',
  ),
  provision_failed: outcome(
    'The tools, files or servers of the session could not be provisioned.',
    'Ends the run as failed.',
    'Fix the tool, file or server that the message names, and send the prompt again.',
  ),
  model_request_failed: outcome(
    'The model provider rejected the request.',
    'Ends the run as failed.',
    'Read the error of the provider, which the message quotes.',
  ),
  context_overflow: outcome(
    'The model provider rejected the prompt: it exceeds the context window of the model.',
    'Compacts older messages and retries once. Ends the run as failed if nothing can be compacted, a hook vetoes the compaction, or the retry fails.',
    'Send less at once, bound tool results, set `model.context_window`, or choose a model with a larger window.',
  ),
  summary_empty: outcome(
    'The model returned an empty summary of older messages.',
    'Clears old tool results instead, or continues without a compaction.',
    'Use another model, or set `compaction: {strategy: clear_tool_results}` in the persona.',
  ),
  compaction_aborted: outcome(
    'The run ended while a model summarized older messages.',
    'Ends the run without a compaction.',
    'Nothing to do: the next run considers compaction again.',
  ),
  model_rate_limited: outcome(
    'The model provider answered HTTP 429 (rate limit) until the retries were exhausted.',
    'Retries with back-off and honours retry-after. Then ends the run as failed.',
    'Wait, or raise the rate limit at the provider.',
  ),
  model_unavailable: outcome(
    'The model provider was unreachable or answered HTTP 5xx until the retries were exhausted.',
    'Retries with back-off. Then ends the run as failed.',
    'Check the address, the network and the status page of the provider.',
  ),
  model_stream_broken: outcome(
    'The streamed answer of the model was cut off, had no final frame, or was malformed.',
    'Keeps the partial text. Retries if no text was shown yet, otherwise ends the run as failed.',
    'Prompt the session again. If the error persists, check the status of the provider or choose another model.',
  ),
  model_timeout: outcome(
    'The model provider sent no data within the time limit.',
    'Keeps the partial text. Retries if no text was shown yet, otherwise ends the run as failed.',
    'Prompt the session again. If the error persists, check the status of the provider or choose another model.',
  ),
  model_restarts_exhausted: outcome(
    'New owners of the session (after crashes, deploys, hand-overs) restarted the model call or the compaction more often than the limit of ten allows.',
    'Ends the run as failed. After a failed compaction it continues if the prompt fits.',
    'Find out why hosts crash or hand the session over, then prompt it again.',
  ),
  script_exhausted: outcome(
    'The scripted model has no unused turn that matches.',
    'Ends the run as failed.',
    'Add a turn to the script.',
  ),
  script_invalid: outcome(
    'The script file is missing, unreadable, or does not fit the documented format.',
    'Rejects a start before the session exists. Ends a later run as failed.',
    'Correct the path of the script, or the member that the message names.',
  ),
  replay_exhausted: outcome(
    'A model `replay/<file>` answers from a recorded journal, and the journal has no further answer or summary.',
    'Ends the run as failed.',
    'Use a journal with an answer for each request of the run, or a scripted model. See “Answers from a journal” in the guide “Models”.',
  ),
  invalid_call_arguments: outcome(
    'The arguments of the tool call are invalid JSON or do not match the schema of the tool.',
    'Does not run the call. The model gets an error result.',
    'Nothing to do: the model may call the tool again. If the error persists, improve the description of the arguments.',
  ),
  unknown_tool: outcome(
    'The model called a tool that the session does not have.',
    'Does not run the call. The model gets an error result.',
    'Nothing to do if the call was a mistake. Otherwise start the tool worker and check the persona’s `tools`.',
  ),
  too_many_calls: outcome(
    'The model answer has more than 64 tool calls.',
    'The calls beyond 64 get error results.',
    'Nothing to do: the error result asks the model for fewer calls. `limits.parallel_calls` bounds the calls that run concurrently.',
  ),
  arguments_too_large: outcome(
    'The arguments of all tool calls in one model answer exceed 768 KiB in total, or 128 KiB without their long texts.',
    'The calls beyond the limit get error results, and their arguments are not stored.',
    'Nothing to do: the error result asks the model to split the work.',
  ),
  tool_failed: outcome(
    'The tool threw an error, or its server failed.',
    'The model gets an error result.',
    'Nothing to do: the model gets the error of the tool. If it persists, fix the tool or its server.',
  ),
  tool_result_too_large: outcome(
    'The tool call ran, and its result exceeds the size limit for results.',
    'Drops the result. The model gets an error result that says so.',
    'Make the tool return less: a range, a filter, or the name of a file.',
  ),
  result_unknown: outcome(
    'The model asked read_result for a reference that belongs to no result of this session.',
    'The model gets an error result.',
    'Use the reference that the truncated result contains.',
  ),
  // Crews
  too_deep: outcome(
    'The session may have no further generation of child sessions: limits.depth of this session or of a parent.',
    'Starts no child session. The model gets an error result.',
    'Do the work in this session, or raise limits.depth (at most 8).',
  ),
  too_many_children: outcome(
    'The session has the maximum number of open child sessions: limits.children.',
    'Starts no child session. The model gets an error result.',
    'Delegate again after a child session has ended, or raise limits.children (at most 64).',
  ),
  budget_not_left: outcome(
    'The remaining budget is reserved by other child sessions, or too small to share.',
    'Starts no child session. The model gets an error result.',
    'Delegate again after a child session has ended, or raise the budget.',
  ),
  too_many_hops: outcome(
    'More than 16 messages between sessions followed from one another: probably an infinite loop.',
    'Does not send or accept the message. The model of the sender gets an error result.',
    'Let a person send the next prompt: the count then starts at zero.',
  ),
  handoff_not_listed: outcome(
    'The `handoffs` of the current persona do not list the persona that the model named.',
    'The session keeps its persona. The model gets an error result that lists the allowed personas.',
    'Add the other persona to `handoffs`. The change applies to sessions that start later.',
  ),
  second_handoff: outcome(
    'The same model answer contains an earlier hand-off.',
    'The model gets an error result. The first hand-off stays valid.',
    'Hand off to one persona at a time.',
  ),
  too_many_handoffs: outcome(
    'The session was handed off 16 times in a row: probably an infinite loop.',
    'The session keeps its persona. The model gets an error result, and the run continues.',
    'Send a message to the session, or state in the prompts of the personas which of them does what.',
  ),
  child_failed: outcome(
    'A child session ended without an answer. The detail gives the stop reason.',
    'The model gets an error result with the last text of the child session. The run continues.',
    'Read the journal of the child session, or delegate again.',
  ),
  child_not_started: outcome(
    'NATS rejected the start of a child session, or its persona or journal cannot be read.',
    'The model gets an error result.',
    'Read the message. After an upgrade of hosts, renew the permissions with `cox admin auth --renew`.',
  ),
  tool_unavailable: outcome(
    'The tool has no available worker, MCP server or command runner.',
    'The model gets an error result.',
    'Check `cox tool list`. Start `cox serve tools FILE`, the MCP server or `cox serve commands`.',
  ),
  tool_interrupted: outcome(
    'A crash or a network failure interrupted the tool call. Its outcome is unknown: it may have taken effect.',
    'Does not run the call again. Reports the unknown outcome to the model.',
    'Check the effect of the call. Declare the tool idempotent if it may run twice.',
  ),
  outside_root: outcome(
    'A path leads outside the root folder of the session.',
    'The tool rejects the path. The model gets an error result.',
    'Nothing to do, or choose another root folder.',
  ),
  command_timeout: outcome(
    'A shell command exceeded its timeout.',
    'Kills the process group of the command. The model gets an error result.',
    'Raise timeout_ms of the call, or let the command do less at once.',
  ),
  hook_threw: outcome(
    'A hook handler threw an error.',
    'fail_closed denies the operation, fail_open continues.',
    'Fix the handler: the journal has its error. Meanwhile, `on_error: fail_open` lets such operations continue.',
  ),
  hook_timeout: outcome(
    'A hook handler exceeded its timeout.',
    'fail_closed denies the operation, fail_open continues.',
    'Raise timeout_ms of the hook, or make the handler faster.',
  ),
  persona_unavailable: outcome(
    'No instance serves the pinned version of the persona within `limits.wait_for_persona_ms`, or its instances repeatedly stopped during the step.',
    'Ends the run. The session stays.',
    'Start an instance with `cox serve personas` and prompt the session again.',
  ),
  hook_unavailable: outcome(
    'No instance serves a registered hook.',
    'fail_closed denies the operation, fail_open continues.',
    'Start the hook service: `cox serve hooks FILE`.',
  ),
  hooks_invalid: outcome(
    'A hook of the session or of its persona is invalid, or there are more than 256.',
    'Ends a run that would start with these hooks. A run in progress keeps its hooks.',
    'Correct the hook that the message names. `cox hook list` lists the hooks.',
  ),
  return_unreadable: outcome(
    'A hook returned a value that JSON cannot represent, or more than 256 KiB, or more small values than a record holds.',
    'fail_closed denies the operation, fail_open continues.',
    'Return a JSON value of at most 256 KiB; without its long texts, at most about 100 KiB for all hooks of one point.',
  ),
  verdict_invalid: outcome(
    'A hook returned an invalid verdict: an unknown key, or an invalid value of a key.',
    'Denies the operation, also under fail_open: the hook did answer.',
    'Correct the key that the message names.',
  ),
  verdict_not_allowed: outcome(
    'A hook returned a verdict that its hook point does not accept.',
    'Denies the operation, also under fail_open: the hook did answer.',
    'Use a verdict of this point; the message lists the points that accept the returned one.',
  ),
  suspension_expired: outcome(
    'The suspension of a session expired, and its on_timeout is fail.',
    'Ends the run in error.',
    'Send the signal earlier, suspend for a longer time, or choose another on_timeout.',
  ),
  prompt_blocked: outcome(
    'A user_prompt_submit hook blocked the prompt.',
    'Ends the run as user_prompt_submit_blocked.',
    'Change what the reason names and send the prompt again. `cox hook list` lists the hooks.',
  ),
  too_many_jobs: outcome(
    'A hook started a job, and the hooks of the session already had 64 open jobs, the maximum.',
    'Forgets the oldest open job: a later report on it is rejected as job_unknown.',
    'Report the end of each job as feedback.',
  ),
  too_much_feedback: outcome(
    'The session has 64 pieces of feedback that the model has not read yet, the maximum. Tools, hooks and MCP servers send feedback: text for the model outside a result.',
    'Drops further feedback. The last piece that the model reads says how many pieces were dropped.',
    'In the tool, hook or MCP server, send less feedback per turn.',
  ),
  // Invariants
  session_failed: exception(
    'An internal invariant of the session failed: a bug in Coxswain.',
    'Reads the session again from its journal, closes its open calls, and ends the run as failed.',
    'Report the bug with the journal: `cox session export`.',
  ),
  event_not_accepted: exception(
    'The state machine rejected an event of its own journal: a bug in Coxswain.',
    'Drops the session from memory and reads it again from its journal. If that fails, too, rejects commands to the session.',
    'Report the bug with the journal: `cox session export`. Other sessions continue.',
  ),
  derivation_unbounded: exception(
    'One input produced more events than the limit allows: a bug in Coxswain.',
    'Drops the session from memory and reads it again from its journal.',
    'Report the bug with the journal: `cox session export`. Other sessions continue.',
  ),
  replay_diverged: exception(
    'A recomputed record differs from the recorded one.',
    'Stops at that record.',
    'Compare the expected and the actual record: the journal or the program was changed.',
  ),
  machine_version_unknown: exception(
    'A run was recorded by a version of the state machine that decides differently from this release.',
    'Replay and fork stop at the record that starts the run. A host rejects commands to the session only if the recorded events lead this release to another state.',
    'Replay the run with the release that recorded it. If a host rejects commands with this code, start a host of that release.',
  ),
  export_line_invalid: exception(
    'A line of an exported journal is neither a record, a stored object nor the closing line, or it is truncated, too long or misplaced.',
    'Stops at that line and imports nothing.',
    'Use the unchanged output of `cox session export`. Export the session again if the file was truncated or changed.',
  ),
  export_end_mismatch: exception(
    'The closing line of an exported journal does not match its records: the file was truncated or changed.',
    'Stops at the closing line and imports nothing.',
    'Export the session again, or use an unchanged copy of the file.',
  ),
  import_unfinished: exception(
    'The import of the session is in progress or was interrupted.',
    'Rejects commands to the session and leaves its journal unchanged.',
    'Wait, or run the import again: it continues where it stopped.',
  ),
  record_unreadable: exception(
    'A record has an unknown format, or it is damaged and no replica of the stream has a readable copy.',
    'Stops at that record. Session lists mark the session.',
    'Use the release that wrote the record, or a newer one. `cox doctor` names a damaged replica.',
  ),
  chain_broken: exception(
    'The hash chain is broken: prev_hash of a record is not the hash of the record before it.',
    'Stops at that record.',
    'The journal was changed or is incomplete: restore it from a backup or an export.',
  ),
  journal_conflict: exception(
    'Another host claimed the session and wrote to its journal (fencing).',
    'Drops the session without a write. The other host continues it.',
    'Nothing to do: the other host owns the session, and this host has released it.',
  ),
  journal_unavailable: exception(
    'NATS did not acknowledge a write to the journal in time.',
    'Stops the session on this host. A host recovers it when NATS responds again.',
    'Check the NATS server with `cox doctor`.',
  ),
  record_too_large: exception(
    'A record exceeds 512 KiB although its large fields are stored separately.',
    'Ends the run of the session as failed.',
    'Bound tool results (`max_output`) and the size of messages. If neither is large, report the bug with the journal.',
  ),
  blob_missing: exception(
    'A record refers to a stored object that is missing from the object store and from the exported file.',
    'Stops at that record.',
    'For a file: export the session again without `--records-only`, or name the bus with the objects: `--nats URL`. Otherwise restore the object store from a backup.',
  ),
  // Hook services and manifests
  hook_module_invalid: exception(
    'A module of hook handlers cannot be loaded, or declares an invalid registration.',
    'Stops with the file and, if known, the line. A running service keeps the earlier version.',
    'Correct the file at the place that the message names.',
  ),
  manifest_invalid: exception(
    'The manifest coxswain.yaml cannot be read, has an invalid member, or names a missing handler.',
    'Stops with the file and, if known, the line and column.',
    'Correct the line that the message names. A session host starts without a manifest with `--manifest none`.',
  ),
  folder_not_trusted: exception(
    'The current folder contains code or permissions that you have not trusted, and there is no terminal for the question.',
    'Starts nothing and runs no code of the folder.',
    'Review the file that the message names, then run `cox trust` in the folder. Or name the file: `--manifest FILE`, `--persona ./FILE`.',
  ),
  policy_invalid: exception(
    'The policy file of a host cannot be read, or has an unknown member or an invalid value.',
    'Stops with the file, line and column.',
    'Correct the line that the message names. The guide “Policy of a host” documents every member.',
  ),
  hook_id_taken: exception(
    'Another hook service has announced a hook of this id.',
    'Stops before it announces anything.',
    'Give the hook another id, or give the service another --name.',
  ),
  hook_service_unknown: exception(
    'No hook service of this name is registered.',
    'Changes nothing.',
    'Use a name that `cox hook list` prints, and the tenant of the service.',
  ),
  hook_service_serving: exception(
    'The hook service cannot be removed from the registry: instances of it are running.',
    'Changes nothing, because the running instances would silently receive no more requests.',
    'Stop the instances that `cox hook list` prints, then remove the service.',
  ),
  // Personas and tools on the bus
  persona_paused: exception(
    'The persona is already paused.',
    'Changes nothing.',
    'Nothing to do: the persona is already paused as requested.',
  ),
  persona_not_paused: exception(
    'The persona is not paused.',
    'Changes nothing.',
    'Nothing to do: the persona starts model requests. `cox persona list --served` prints the state of each persona.',
  ),
  persona_not_registered: exception(
    'No persona of this name is announced.',
    'Changes nothing.',
    'Use a name that `cox persona list --served` prints, and the tenant of the persona.',
  ),
  persona_serving: exception(
    'The announcement of the persona cannot be removed: instances of it are running.',
    'Changes nothing, because the next instance to start would announce it again.',
    'Stop the instances that `cox persona list --served` prints, then remove the announcement.',
  ),
  persona_module_invalid: exception(
    'A persona module cannot be loaded, its default export is not a persona, or its export `tools` is not a list of tools.',
    'Stops with the file and, if known, the line.',
    'Correct the file at the place that the message names.',
  ),
  persona_not_servable: exception(
    'The persona is invalid, too large to be announced, or has a tool that served personas cannot have.',
    'Announces nothing.',
    'Correct the definition as the message says.',
  ),
  persona_version_taken: exception(
    'This version of the persona is already announced with another definition.',
    'Announces nothing: sessions that pinned the version would get another persona.',
    'Use another version or none, or remove the announcement with `cox persona remove`.',
  ),
  tool_not_registered: exception(
    'No tool of this name is announced.',
    'Changes nothing.',
    'Use a name that `cox tool list` prints, and the tenant of the tool.',
  ),
  tool_serving: exception(
    'The announcement of the tool cannot be removed: instances of it are running.',
    'Changes nothing, because the next instance to start would announce it again.',
    'Stop the instances that `cox tool list` prints, then remove the announcement.',
  ),
  tool_module_invalid: exception(
    'A tool module cannot be loaded, or its default export is neither a tool nor a list of tools.',
    'Stops with the file and, if known, the line. A running service keeps the earlier version.',
    'Correct the file at the place that the message names: `export default defineTool({ … })`.',
  ),
  persona_invalid: exception(
    'A persona has an unknown key or an invalid value, or its file is missing or cannot be read.',
    'Starts nothing.',
    'Correct what the message names: a path, or a key with, if possible, the nearest valid one. `cox persona check FILE` checks a file.',
  ),
  tool_definition_invalid: exception(
    'The definition of a served tool has an invalid name, schema or setting.',
    'Announces nothing. A tool that is already served stays unchanged.',
    'Correct the definition as the message says.',
  ),
  tool_crashed: exception(
    'A served tool caused an uncaught exception, for example in a timer or an event handler.',
    'Ends the process with exit code 1. Within 4 seconds, hosts treat in-flight calls as after a kill: idempotent ones move, the outcome of the others is unknown.',
    'Catch the exception in the tool; the log has its stack. Restart the process.',
  ),
  // Starting up
  prices_unreadable: exception(
    'The price file that COX_PRICES names cannot be read or is invalid.',
    'Stops with the problem.',
    'Correct the file: prices: [{model, input, output, cached_input}].',
  ),
  nats_server_not_found: exception(
    'No nats-server was found on this machine, and none could be downloaded.',
    'Stops with the list of all attempts.',
    'Reinstall coxswain with optional dependencies, install nats-server 2.12 or newer, or set NATS_URL.',
  ),
  nats_server_too_old: exception(
    'The nats-server is older than 2.12 and would silently ignore parts of the configuration.',
    'Stops.',
    'Install nats-server 2.12 or newer, or unset COX_NATS_SERVER: cox then finds or downloads one.',
  ),
  not_permitted: exception(
    'The NATS user of this process has no permission for this command or request (permissions violation).',
    'Stops. The command was not stored.',
    'Use the key of a role that has the permission: docs/guides/security.md lists the roles.',
  ),
  streams_missing: exception(
    'A stream is missing, and the NATS user of this process may not create streams.',
    'Stops.',
    'Run `cox admin streams` with the key of an admin.',
  ),
  seed_file_unusable: exception(
    'The file that --nkey or NATS_NKEY names cannot be read, or contains no user seed.',
    'Stops.',
    'Name a key file that cox admin auth has written.',
  ),
  auth_out_exists: exception(
    'The output folder of cox admin auth already exists.',
    'Stops and overwrites nothing: keys in use would be lost.',
    'Name another folder, or change the existing one with --add and --remove.',
  ),
  keyring_unreadable: exception(
    'The key folder has no valid keys.json of cox admin auth.',
    'Stops and changes nothing.',
    'Name a folder that cox admin auth --out has written.',
  ),
  key_exists: exception(
    'A key of this role and name already exists.',
    'Stops and changes nothing.',
    'Give the new key another name: --add operator=alice.',
  ),
  key_not_found: exception(
    'There is no key of this role and name.',
    'Stops and changes nothing.',
    'Use a key that the message lists.',
  ),
  key_is_last: exception(
    'The key is the last one of its role. The bus keeps at least one key of each of the roles host, admin and retention.',
    'Stops and changes nothing.',
    'Add another key of the role first.',
  ),
  tenant_not_found: exception(
    'The key folder has no account of this tenant, or the bus has no session of a tenant that --keep names.',
    'Stops. Changes and deletes nothing.',
    'Use a tenant that the message lists, or add it: `cox admin auth --add tenant=NAME`.',
  ),
  tenant_exists: exception(
    'The key folder already has this tenant.',
    'Stops and changes nothing.',
    'Use another name. To add a key to a tenant, use --add TENANT/ROLE=NAME.',
  ),
  tenant_is_last: exception(
    'The tenant is the only one of the key folder.',
    'Stops and changes nothing.',
    'Add another tenant before you remove this one.',
  ),
  auth_out_unusable: exception(
    'The output folder of cox admin auth cannot be created or written.',
    'Stops and writes nothing.',
    'Name another folder with --out.',
  ),
  answer_unreadable: exception(
    'The response to a query is not in the format of this version: it comes from another version or another program.',
    'Stops.',
    'Upgrade the older side. Check which programs subscribe to the query subjects.',
  ),
  nats_server_start_failed: exception(
    'The embedded nats-server did not start.',
    'Stops and quotes the log of the server.',
    'Read the end of the log in the message. `cox doctor` checks the folder, the port and the server.',
  ),
  client_closed: exception(
    'The program closed the client before or during the call.',
    'Ends the loops of the client. Commands that were sent before stay sent.',
    'Close the client last, or connect again.',
  ),
  invalid_option: exception(
    'An option of a call is missing, invalid, or contradicts another option.',
    'Sends nothing.',
    'Correct the option that the message names.',
  ),
  aborted: exception(
    'The abort signal of the caller was triggered.',
    'Stops waiting. A command that was sent before stays sent.',
    'Nothing to do: the program requested it. The reason of the signal is the `cause`.',
  ),
  gateway_unreachable: exception(
    'No gateway responds at the address, or the proxy in front of the gateway cannot reach one.',
    'Stops. Reads are retried for ten seconds. Followed streams reconnect without a time limit.',
    'Check the address and the network. A page of another origin needs `--allow-origin` (CORS). Retry after a restart of the gateway.',
  ),
  transport_unavailable: exception(
    'The browser client was given the address of a bus, which it cannot connect to.',
    'Does not connect.',
    'Give `gateway` and `token`. On a server, import `@coxswain/client`, not `@coxswain/client/http`.',
  ),
  nats_unreachable: exception(
    'No NATS server responds at the address, or JetStream is not available: it elects a leader or has lost its quorum.',
    'Stops. Reads are retried for ten seconds.',
    'Check the address, the token and the servers with `cox doctor`. Retry after a restart of a server. If the message says Authorization Violation, the key or token is wrong or revoked: give a new one.',
  ),
  too_few_servers: exception(
    'The requested number of stream replicas exceeds the number of servers in the cluster.',
    'Stops. Existing replicas stay.',
    'Request at most one replica per server, or add servers first.',
  ),
  copies_incomplete: exception(
    'The requested stream replicas are not all current after two minutes.',
    'Stops waiting. The servers continue to replicate.',
    'Check the progress with `cox doctor`, and check that all servers are running.',
  ),
  rewrite_stopped: exception(
    'cox admin streams --rewrite stopped: a replica has an unreadable message, or a server is unreachable.',
    'Stops before it removes a replica and restores the number of replicas. Readable messages stay readable.',
    'Start all servers, check them with `cox doctor`, and run the command again.',
  ),
  nats_request_refused: exception(
    'The NATS server answered with an unexpected error.',
    'Stops the request. The message quotes the server.',
    'Check the permissions, limits and disk space of the server.',
  ),
  fetch_checksum_mismatch: exception(
    'The checksum of the downloaded nats-server differs from the published one, or from the one that this release pins.',
    'Deletes the download.',
    'Retry. If the error persists, do not trust the source: install nats-server yourself and name it in COX_NATS_SERVER.',
  ),
  nats_server_unusable: exception(
    'The nats-server that COX_NATS_SERVER names is missing, not executable, or built for another system.',
    'Stops.',
    'Correct COX_NATS_SERVER, or unset it: cox then finds or downloads a server.',
  ),
  nats_server_stop_failed: exception(
    'The embedded nats-server did not end after SIGKILL.',
    'Leaves its state directory locked.',
    'Check the disk of the state directory: a process in uninterruptible I/O cannot be killed.',
  ),
  nats_url_invalid: exception(
    'NATS_URL is not a valid address, or its addresses have different credentials.',
    'Stops.',
    'Use nats://[user:password@ or token@]host:port. Separate several addresses with commas, with the same credentials.',
  ),
  server_option_invalid: exception(
    'An option of the embedded server is invalid.',
    'Stops with the name of the option.',
    'Use a loopback address, a port up to 65535, and a token of 16 or more letters, digits, - and _.',
  ),
  connection_file_invalid: exception(
    'connection.json in the state directory is invalid: another program wrote it.',
    'Stops.',
    'Delete the file and start the command again.',
  ),
  bus_not_found: exception(
    'connect() was called without options, and neither environment, context nor state directory names a bus or a gateway.',
    'Does not connect.',
    'Start `cox up`. Or set NATS_URL, set COX_GATEWAY_URL and COX_GATEWAY_TOKEN, use a context, or give connect() its options.',
  ),
  fetch_setting_invalid: exception('COX_FETCH is neither never nor auto.', 'Stops.', 'Set COX_FETCH to never or auto.'),
  fetch_failed: exception(
    'A download source of nats-server is unreachable or returned an unexpected response.',
    'Tries the next source.',
    'Read the list of attempts in nats_server_not_found.',
  ),
  command_failed: exception(
    'A program that downloads or unpacks nats-server has failed.',
    'Tries the next source.',
    'Read the list of attempts in nats_server_not_found.',
  ),
  // The command line and the client
  usage: exception(
    'The command line is invalid.',
    'Starts nothing and exits with 2. The message names the argument.',
    'Correct the command line; every command has --help.',
  ),
  not_found: exception(
    'There is no open tool call to cancel, and the command names none.',
    'Sends nothing.',
    'List the open calls with `cox session show`.',
  ),
  timeout: exception(
    'The expected event did not arrive in time.',
    'Stops waiting. Commands that were sent stay sent.',
    'Check the state of the session: `cox session show`.',
  ),
  receipt_timeout: exception(
    'The command is stored, and no host reported or recorded its outcome in time.',
    'Stops waiting. The command may still take effect.',
    'Send it again under the same id, or check for a running host with `cox doctor`.',
  ),
  command_not_stored: exception(
    'NATS did not acknowledge the command within fifteen seconds.',
    'Stops. The command may or may not be stored.',
    'Send it again under the same id. This is safe: a command is applied once.',
  ),
  bus_not_prepared: exception(
    'No session host has ever run on this bus.',
    'Stops.',
    'Run a host on the bus: `cox up --nats URL`.',
  ),
  query_failed: exception(
    'A host failed to answer a query about a session, or stopped responding.',
    'Logs the reason and changes nothing.',
    'Retry the query, and read the logs of the hosts.',
  ),
  too_many_queries: exception(
    'The host answers the maximum number of concurrent queries.',
    'Rejects the query.',
    'Retry the query after a moment.',
  ),
  too_many_keys: exception(
    'A tenant has more announcements, pauses or rules of a kind than a list contains: 65,536 keys or 64 MiB.',
    'Lists none of them. Hosts ignore names beyond their bounds.',
    'Remove unused tools, personas or hook services of the tenant, and revoke a key that floods the registry.',
  ),
  no_host: exception(
    'No session host responds on this bus at the moment.',
    'Stops. Stored commands wait for a host.',
    'Run a host on the bus: `cox up --nats URL`.',
  ),
  not_left_running: exception(
    '`cox up` did not start in the background.',
    'Exits with 1. The sessions are kept.',
    'Read the log that the message names.',
  ),
  nats_server_ended: exception(
    'The embedded nats-server of `cox up` ended unexpectedly, and restarts failed.',
    'Exits with 1 and quotes the reason. The sessions are kept.',
    'Read the log with `cox logs`, and start `cox up` again.',
  ),
  session_host_ended: exception(
    'A session host of `cox serve sessions` ended unexpectedly, and restarts failed.',
    'Stops the other hosts in order, and exits with 1. The sessions are kept, and other services continue them.',
    'Read the log of the host, correct the cause, and start the service again.',
  ),
  console_not_built: exception(
    'This installation does not contain the web console, which shows the statechart.',
    'Serves nothing.',
    'Build it (`npm run prepare`), or read the inspection as JSON lines: `cox session inspect --json`.',
  ),
  streams_gone: exception(
    'The streams of the sessions were deleted while a host was running.',
    'Stops the host; `cox up` exits with 1.',
    'To keep the sessions, restore a backup first. Then start the host again. It creates missing streams; on a bus with keys, first run `cox admin streams`.',
  ),
  revoked: outcome(
    'A command was revoked before its delivery.',
    'Never delivers it.',
    'Nothing to do, or send it again under a new id.',
  ),
  rejected: outcome(
    'The session rejected a command and gave no code.',
    'Changes nothing.',
    'Read the journal of the session: `cox session export`.',
  ),
  internal: exception(
    'An unexpected error without a code occurred: a bug in Coxswain.',
    'Stops and prints its stack.',
    'Report the bug with the command line, the release (`cox --version`) and the stack.',
  ),
  system_error: exception(
    'The operating system rejected an operation, such as reading a file or opening a connection.',
    'Stops and prints the reason, with the path or the address.',
    'Correct the path or its permissions, free disk space, or check the address, then repeat the command.',
  ),
  stage_not_reached: exception(
    'The command did not reach the stage of --wait: its run has ended, or no host runs the session.',
    'Keeps the command for the next run or the next host of the session.',
    'Nothing to do, or continue the session as the message says.',
  ),
  file_in_use: exception(
    'Another command still changes this file of tokens, keys or contexts.',
    'Changes nothing, after a wait of 10 seconds.',
    'Run the command again. If the named process does not run `cox`, delete the file `….claim-PID-…` in the same folder.',
  ),
  // The steering file
  steering_file_unusable: exception(
    'The steering file is not a regular file, or cannot be read, moved or written, or its folder does not exist.',
    'Reports it once and tries again.',
    'Put a regular file there, in a writable folder.',
  ),
  steering_file_held: exception(
    'Another process already reads this steering file.',
    'Waits, and reads the file after the other process has ended.',
    'Nothing to do, or give another --steering-file.',
  ),
  steering_not_sent: exception(
    'NATS did not accept a line of the steering file.',
    'Keeps the line in the file and tries again.',
    'Check the bus with `cox doctor`.',
  ),
  state_dir_unusable: exception(
    'The state directory is not a directory, or cannot be created or written.',
    'Stops with the reason.',
    'Give another --state-dir, or make the directory yours and writable, with free disk space. `cox doctor` checks it.',
  ),
  state_dir_in_use: exception(
    'Another instance uses this state directory: `cox up`, or a command such as `cox run` that started its own instance. `cox up` waits for such a command up to `--wait-for-folder`.',
    'Stops with the name and the process id of the other instance.',
    'Wait for the end of the command, stop the other instance, or give another --state-dir.',
  ),
  up_not_stopped: exception(
    '`cox down` asked `cox up` to stop, and the process did not end in time.',
    'Leaves the process running.',
    'Read the log with `cox logs`, then end the process by its id.',
  ),
  contexts_invalid: exception(
    'The file of contexts cannot be read, has an invalid member, or is writable by other users.',
    'Uses no context and changes nothing.',
    'Correct the member that the message names, or remove the write permission of other users. Or delete the file and add the contexts again.',
  ),
  context_not_found: exception(
    'There is no context of this name.',
    'Does nothing.',
    'Use a name that `cox context list` prints, or add the context with `cox context add`.',
  ),
  context_exists: exception(
    'A context of this name already exists.',
    'Changes nothing.',
    'Choose another name, or replace the context with `--force`.',
  ),
  command_socket_unusable: exception(
    'The socket of a command runner is in use by another process, or cannot be created.',
    'Stops with the reason.',
    'Stop the other process, or give another --socket in an existing folder that this user may write.',
  ),
  port_in_use: exception(
    'Another process listens on the requested port (EADDRINUSE).',
    'Stops with the name of the listener and the port.',
    'Stop the other process, or use another port (--port, --gateway-port, --listen, --metrics-port).',
  ),
  stream_config_mismatch: exception(
    'The NATS server did not store the configuration of a stream as requested.',
    'Stops with the name of the setting and the version of the server.',
    'Upgrade the server, or correct the configuration of the stream.',
  ),
} as const satisfies { readonly [Kind in ErrorKind as ErrorCodeOf<Kind>]: CatalogueEntry<Kind> };
