/** The ports of personas: where definitions are found, and those that processes of their own serve. */
import type { Persona, SessionRef, TenantId } from '@coxswain/protocol';
import type { HookReply, HookRequest } from './hooks.ts';
import type { ModelPart, ModelRequest, ModelResult } from './model.ts';

/** An announced persona: sessions that start now pin this version. */
export interface ServedPersona {
  readonly definition: Persona;
  readonly version: string;
}

/** One try of one step. */
export interface PersonaStep {
  readonly ref: SessionRef;
  readonly epoch: number;
  /**
   * The epoch of the first request for the step. If it is older than the session's, an earlier owner may have started
   * it.
   */
  readonly askedIn: number;
  /** Which try of the step this is, from 0. With the epoch it tells the tries of a step apart. */
  readonly tries: number;
  readonly persona: string;
  readonly version: string;
  readonly request: ModelRequest;
  /** Called once an instance has taken it. */
  readonly onTaken: (instance: string) => void;
}

/**
 * The end of an attempt. `unserved`: no instance took it, and nothing ran. `lost`: its instance has died, or returned
 * it because the instance ends. Then the step may start on another instance, and the streamed text so far is void.
 */
export type StepEnd =
  | { readonly status: 'ended'; readonly result: ModelResult }
  | { readonly status: 'unserved' }
  | { readonly status: 'lost'; readonly instance: string; readonly cause: 'gone' | 'handed_back' };

/** Personas that are served elsewhere. What it says of who is there is hearsay: it may be late. */
export interface ServedPersonas {
  /** The version that was announced last, with or without instances; null for an unknown name. */
  find(tenant: TenantId, name: string): ServedPersona | null;
  /** All announced names, in order. */
  names(tenant: TenantId): readonly string[];
  /** Whether an instance takes steps of this version. */
  isServed(tenant: TenantId, name: string, version: string): boolean;
  /** Set while it is paused: no new step of it starts on any instance. */
  pause(tenant: TenantId, name: string): { readonly reason?: string | undefined } | null;
  /** Calls back whenever one of the answers above may have changed. @returns ends that. */
  onChange(changed: () => void): () => void;
  /**
   * Runs one attempt. Contract: never rejects; `onPart` is called in order, never after it has settled, and never again
   * after a missed piece. When `signal` aborts, the instance is notified, and the attempt settles within a bounded
   * time.
   */
  step(step: PersonaStep, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<StepEnd>;
  /**
   * Asks one of a persona's own hooks, where the version that its registration names is served; another instance where the one that
   * was asked has gone, or as soon as there is one. Where all who served it have said that they leave it is `hook_unavailable`.
   * Contract: never rejects. The caller bounds the time.
   */
  askHook(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

/** Where personas are found by name. */
export interface Personas {
  /** The newest definition of this name, or null. */
  find(name: string): Promise<Persona | null>;
  /** All names, for error messages and lists. */
  names(): Promise<readonly string[]>;
}
