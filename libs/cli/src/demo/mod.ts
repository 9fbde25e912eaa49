/** The demo. */
export { cancelAndWait } from './cancel-and-wait.ts';
export { APPROVED_AFTER_MS } from './guide.ts';
export { LateApproval } from './late-approval.ts';
export { playDemo, reachable } from './play-demo.ts';
export { SelfPlayer } from './self-player.ts';
export { SLOW_TOOL, STEER, type Story, writeStory } from './story.ts';
