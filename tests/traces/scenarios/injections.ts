/** What becomes of messages besides their delivery: reminders live and end, messages collapse and are taken back. */
import { ask, type Scenario, say } from '../scenario.ts';

/** See the top of the file. */
export const INJECTIONS: readonly Scenario[] = [
  {
    name: 'reminders',
    shows: 'reminders of every voice: one ends with its turn, one makes way for a newer one, one is cleared, one stays',
    turns: [
      ask(['haul', { ms: 100 }]),
      ask(['haul', { ms: 100 }]),
      ask(['haul', { ms: 100 }]),
      say('Moored.', { delay_ms: 100 }),
    ],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('remind', { body: 'Mind the tide.', ttl_turns: 1, tags: ['water'], actor: 'mara' });
      await stage.send('remind', { body: 'Wind from the west.', dedupe_key: 'wind', role_hint: 'developer' });
      const lamps = await stage.send('remind', { body: 'Lamps at dusk.', role_hint: 'user_block', propagate: 'all' });
      await stage.send('remind', { body: 'Keep the log.', role_hint: 'ephemeral_cache', preserve_on_compact: true });
      await stage.wait(150);
      await stage.send('remind', { body: 'Wind from the north.', dedupe_key: 'wind', role_hint: 'developer' });
      await stage.wait(100);
      await stage.send('revoke', { command_id: lamps, actor: 'mara' });
      await stage.wait(500);
    },
  },
  {
    name: 'taken-back',
    shows: 'messages under one key collapse to the newest in the oldest’s place; others are revoked and replaced',
    turns: [ask(['haul', { ms: 100 }]), say('Going on.'), say('Moored.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('steer', { body: 'North.', dedupe_key: 'course' });
      const slow = await stage.send('steer', { body: 'Slower.' });
      await stage.send('steer', { body: 'North by east.', dedupe_key: 'course' });
      const gone = await stage.send('followup', { body: 'Scrub the deck.' });
      await stage.send('followup', { body: 'Furl the sails.' });
      await stage.send('replace', { command_id: slow, body: 'Slower, by two knots.' });
      await stage.send('revoke', { command_id: gone, actor: 'mara' });
      await stage.send('revoke', { command_id: gone });
      await stage.wait(200);
      await stage.send('revoke', { command_id: slow });
      await stage.send('replace', { command_id: 'nothing', body: 'Anything.' });
    },
  },
];
