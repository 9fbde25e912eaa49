/** Routes that send a command to a session. */
import { takesText, type Verb } from '@coxswain/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../app/mod.ts';
import { VERB_SCOPES } from '../auth/mod.ts';
import { handleCommand } from '../commands/mod.ts';
import type { GatewayContext } from '../context/mod.ts';
import {
  bodyOf,
  CancelledCall,
  IdempotencyHeader,
  OfCall,
  OfPending,
  OfSession,
  PROBLEMS,
  StoredCommand,
  Waiting,
} from '../http/mod.ts';
import { PLAIN_TEXT } from './open-api.ts';

/** Verbs with a route `/v1/sessions/:session_id/VERB`, with their summaries. */
const VERB_ROUTES = {
  prompt: 'Starts the next run of an ended session.',
  steer: 'Sends a message into a running session.',
  remind: 'Adds a reminder to the prompts of the session.',
  followup: 'Queues a prompt for the end of the current run.',
  cancel: 'Ends the run; the session stays.',
  suspend: 'Suspends the session at its next turn boundary.',
  resume: 'Resumes a suspended session.',
  signal: 'Sends a signal, which wakes a session that waits for it.',
} as const satisfies Partial<Record<Verb, string>>;

/** The last segments of the paths that accept POST below a session, for hints about misspelt verbs. */
export const POST_SEGMENTS: readonly string[] = [...Object.keys(VERB_ROUTES), 'fork'];

const TAKES_TEXT = {
  description: 'Also accepts `text/plain`: the text is the member `body`, or JSON if it starts with `{`.',
  consumes: ['application/json', PLAIN_TEXT],
};
const ANSWER = { 202: StoredCommand, ...PROBLEMS };

type ByAddress = FastifyRequest & { readonly query: Waiting; readonly params: { readonly session_id: string } };

/** Adds the routes. */
export function commandRoutes(app: App, context: GatewayContext): void {
  for (const [verb, summary] of Object.entries(VERB_ROUTES) as [keyof typeof VERB_ROUTES, string][]) {
    app.post(
      `/v1/sessions/:session_id/${verb}`,
      {
        config: { scope: VERB_SCOPES[verb] },
        schema: {
          operationId: verb,
          summary,
          ...(takesText(verb) ? TAKES_TEXT : {}),
          tags: ['commands'],
          params: OfSession,
          querystring: Waiting,
          headers: IdempotencyHeader,
          body: bodyOf(verb),
          response: ANSWER,
        },
      },
      (request: FastifyRequest, reply: FastifyReply) => handleCommand(context, request as ByAddress, reply, verb),
    );
  }

  app.post(
    '/v1/sessions/:session_id/approvals/:call_id',
    {
      config: { scope: VERB_SCOPES.approve },
      schema: {
        operationId: 'approve',
        summary: 'Allows or denies a pending tool call. The first decision stays valid.',
        tags: ['commands'],
        params: OfCall,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('approve', ['call_id']),
        response: ANSWER,
      },
    },
    (request: FastifyRequest, reply: FastifyReply) =>
      handleCommand(context, request as ByAddress, reply, 'approve', { call_id: callOf(request) }),
  );

  app.post(
    '/v1/sessions/:session_id/calls/:call_id/cancel',
    {
      config: { scope: VERB_SCOPES.cancel_call },
      schema: {
        operationId: 'cancelCall',
        summary: 'Cancels one tool call. The session continues. With wait=outcome the response contains the outcome.',
        tags: ['commands'],
        params: OfCall,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('cancel_call', ['call_id']),
        response: { ...ANSWER, 202: CancelledCall },
      },
    },
    (request: FastifyRequest, reply: FastifyReply) =>
      handleCommand(context, request as ByAddress, reply, 'cancel_call', { call_id: callOf(request) }),
  );

  app.delete(
    '/v1/sessions/:session_id/pending/:target_command_id',
    {
      config: { scope: VERB_SCOPES.revoke },
      schema: {
        operationId: 'revoke',
        summary: 'Withdraws a queued message or a reminder in force.',
        tags: ['pending'],
        params: OfPending,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('revoke', ['target_command_id']),
        response: ANSWER,
      },
    },
    (request: FastifyRequest, reply: FastifyReply) =>
      handleCommand(context, request as ByAddress, reply, 'revoke', { target_command_id: targetOf(request) }),
  );

  app.put(
    '/v1/sessions/:session_id/pending/:target_command_id',
    {
      config: { scope: VERB_SCOPES.replace },
      schema: {
        operationId: 'replace',
        summary: 'Replaces the text of a queued message, which keeps its place.',
        tags: ['pending'],
        params: OfPending,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('replace', ['target_command_id']),
        response: ANSWER,
      },
    },
    (request: FastifyRequest, reply: FastifyReply) =>
      handleCommand(context, request as ByAddress, reply, 'replace', { target_command_id: targetOf(request) }),
  );

  app.delete(
    '/v1/sessions/:session_id',
    {
      config: { scope: VERB_SCOPES.delete },
      schema: {
        operationId: 'delete',
        summary:
          'Deletes a session that has ended. Its id is never used again. With wait=accepted the receipt states the time until its data is purged.',
        tags: ['commands'],
        params: OfSession,
        querystring: Waiting,
        headers: IdempotencyHeader,
        body: bodyOf('delete'),
        response: ANSWER,
      },
    },
    (request: FastifyRequest, reply: FastifyReply) => handleCommand(context, request as ByAddress, reply, 'delete'),
  );
}

function callOf({ params }: FastifyRequest): string {
  return (params as { readonly call_id: string }).call_id;
}

function targetOf({ params }: FastifyRequest): string {
  return (params as { readonly target_command_id: string }).target_command_id;
}
