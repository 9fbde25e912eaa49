/** The tools by which sessions work together: `delegate`, `handoff` and `send_message`. */
import type { ToolSource } from '@coxswain/ports';
import { DELEGATE_TOOL, HANDOFF_TOOL, SEND_MESSAGE_TOOL } from '@coxswain/protocol';
import { unavailable } from './tool-outcome.ts';

/**
 * Lists `delegate`, `handoff` and `send_message`. Sessions carry their calls out themselves, so nothing is ever called here: a
 * program that puts tools of its own in the place of the built-in ones combines them with these.
 */
export function createCrewTools(): ToolSource {
  return {
    open: async () => ({
      tools: [DELEGATE_TOOL, HANDOFF_TOOL, SEND_MESSAGE_TOOL],
      call: async ({ tool }) => unavailable(`the session itself runs ${tool}`),
      probe: async () => ({ state: 'unknown' }),
      close: async () => [],
    }),
  };
}
