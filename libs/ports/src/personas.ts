/** Ports of personas: definitions by name, and personas that separate processes serve. */
import type { Persona, SessionRef, TenantId, ToolDefinition } from '@coxswain/protocol';
import type { HookReply, HookRequest } from './hooks.ts';
import type { ModelPart, ModelRequest, ModelResult } from './model.ts';

/** An announced persona. Sessions that start now pin this version. */
export interface ServedPersona {
  readonly definition: Persona;
  readonly version: string;
  /** The tools that the announcement names, which run in the instances of this version. None by default. */
  readonly tools?: readonly ToolDefinition[] | undefined;
}

/** One attempt at one step. */
export interface PersonaStep {
  readonly ref: SessionRef;
  readonly epoch: number;
  /**
   * The epoch of the first request for the step. If it is older than the session's epoch, an earlier owner may have
   * started the step.
   */
  readonly firstRequestEpoch: number;
  /** The number of this attempt, from 0. With the epoch it identifies the attempt. */
  readonly attempt: number;
  readonly persona: string;
  readonly version: string;
  readonly request: ModelRequest;
  /** Called once an instance has accepted the step. */
  readonly onTaken: (instance: string) => void;
}

/**
 * The end of an attempt.
 * - `unserved`: no instance accepted it, and nothing ran.
 * - `lost`: its instance has died, or has returned it in order to stop. The step may start on another instance. The
 *   text that was streamed so far is void.
 */
export type StepEnd =
  | { readonly status: 'ended'; readonly result: ModelResult }
  | { readonly status: 'unserved' }
  | { readonly status: 'lost'; readonly instance: string; readonly cause: 'gone' | 'handed_back' };

/** Personas that other processes serve. The reports about live instances may be late. */
export interface ServedPersonas {
  /** The newest announced version, with or without live instances; null for an unknown name. */
  find(tenant: TenantId, name: string): ServedPersona | null;
  /** All announced names, sorted. */
  names(tenant: TenantId): readonly string[];
  /** Whether a live instance accepts steps of this version. */
  isServed(tenant: TenantId, name: string, version: string): boolean;
  /** Set while the persona is paused: no new step starts on any instance. */
  pause(tenant: TenantId, name: string): { readonly reason?: string | undefined } | null;
  /**
   * Calls back when a result of the methods above may have changed, for one tenant, or for any if it is undefined.
   * @returns a function that removes the listener.
   */
  onChange(changed: (tenant?: TenantId) => void): () => void;
  /**
   * Runs one attempt. Contract: never rejects. Calls `onPart` in order, and neither after it has settled nor after a
   * missed part. When `signal` aborts, the instance is notified, and the attempt settles within a bounded time.
   */
  step(step: PersonaStep, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<StepEnd>;
  /**
   * Consults one of a persona's own hooks, on an instance of the version in the registration. If that instance dies,
   * another instance is asked, as soon as there is one. The result is `hook_unavailable` if every instance has
   * announced that it leaves. Contract: never rejects. The caller bounds the time.
   */
  askHook(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

/**
 * Finds personas by name. Both functions may reject. A rejection with the code `nats_unreachable` means an outage: a run,
 * a delegation or a hand-off repeats the request until it is answered. Any other rejection fails it, with the error's
 * message. The check of a start before its first record ignores both.
 */
export interface Personas {
  /** The newest definition of this name, or null. */
  find(name: string): Promise<Persona | null>;
  /** All names, for error messages and lists. */
  names(): Promise<readonly string[]>;
}
