/** The kinds of served work: how each is announced, and what a host logs about it. */
import type { ValueSchema } from '@coxswain/bus';
import { HookAnnouncement, PersonaAnnouncement, type ServedKind, ToolAnnouncement } from '@coxswain/protocol';

/** The announcement of each kind. */
export interface AnnouncementOf {
  readonly tools: ToolAnnouncement;
  readonly personas: PersonaAnnouncement;
  readonly hooks: HookAnnouncement;
}

interface KindTexts {
  /** The member of a log line that holds the name. */
  readonly member: string;
  readonly announced: string;
  readonly removed: string;
  readonly available: string;
  readonly unavailable: string;
}

/** The properties of each kind. */
export const KINDS: {
  readonly [K in ServedKind]: {
    readonly schema: ValueSchema<AnnouncementOf[K]>;
    /** The name, which must be that of the key, and the version that a request may address. */
    identityOf(announcement: AnnouncementOf[K]): { readonly name: string; readonly version?: string };
    readonly log: KindTexts;
  };
} = {
  tools: {
    schema: ToolAnnouncement,
    identityOf: ({ name }) => ({ name }),
    log: {
      member: 'tool',
      announced: 'a tool is announced',
      removed: 'a tool was removed',
      available: 'a tool is available',
      unavailable: 'a tool has no live instance',
    },
  },
  personas: {
    schema: PersonaAnnouncement,
    identityOf: (announcement) => announcement,
    log: {
      member: 'persona',
      announced: 'a persona is announced',
      removed: 'a persona was removed',
      available: 'a persona is available',
      unavailable: 'a persona has no live instance',
    },
  },
  hooks: {
    schema: HookAnnouncement,
    identityOf: ({ service: name }) => ({ name }),
    log: {
      member: 'service',
      announced: 'hooks are registered',
      removed: 'hooks were removed',
      available: 'a hook service is available',
      unavailable: 'a hook service is gone',
    },
  },
};
