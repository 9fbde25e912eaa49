/** Sessions that go from persona to persona: there and back, refused, over a crash, and until their bounds. */
import { BOUNDS, type JsonObject } from '@coxswain/protocol';
import { ask, type Scenario, say } from '../scenario.ts';

const handOff = (to: string, brief: string) => ['handoff', { to, brief }] as const;
/** The mate and the cook may hand off to each other; nobody knows the ghost. */
const CREW: JsonObject = {
  persona: { name: 'mate', handoffs: ['cook', 'ghost'] },
  personas: [{ name: 'cook', handoffs: ['mate'] }],
};

/** See the top of the file. */
export const HANDOFFS: readonly Scenario[] = [
  {
    name: 'handoff-and-back',
    shows:
      'a session goes to another persona once the other calls of the answer have ended, and back; of two hand-offs the first counts',
    turns: [
      ask(handOff('cook', 'Make dinner.'), ['haul', { ms: 100 }], handOff('cook', 'Make supper.')),
      say('Soup.', ask(handOff('mate', 'Dinner is made.'))),
      say('Well done.'),
    ],
    tools: ['haul', 'crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(50);
      await stage.send('steer', { body: 'No salt.' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'handoff-refused',
    shows:
      'a hand-off to one that is not listed, and one to a persona that nobody knows: the old one is told, and goes on',
    turns: [ask(handOff('cooc', 'Make dinner.')), ask(handOff('ghost', 'Boo.')), say('Then I cook.')],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
    },
  },
  {
    name: 'handoff-hooked',
    shows: 'hooks are asked about each hand-off: the first is refused, the second is let, with a reminder',
    turns: [ask(handOff('cook', 'Make grog.')), ask(handOff('cook', 'Make dinner.')), say('Soup.')],
    tools: ['crew'],
    hooks: [
      {
        registration: { id: 'purser', point: 'OnHandoffEmitted', pattern: 'mate' },
        returns: ({ brief }: JsonObject) =>
          brief === 'Make grog.' ? { deny: 'not before noon' } : { body: 'Mind the stores.' },
      },
    ],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
    },
  },
  {
    name: 'handoff-crash',
    shows: 'the host dies once a hand-off is emitted: the next one looks the persona up, and it has the session',
    turns: [ask(handOff('cook', 'Make dinner.')), say('Soup.')],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      stage.crashAfter(3);
      await stage.start(CREW);
      await stage.host('deck-2');
      await stage.wait(10_000);
    },
  },
  {
    name: 'handoff-limits',
    shows:
      'a hand-off in the midst of a step leaves it unfinished; the other persona has steps and limits of its own, beside those of the start',
    turns: [
      { ...ask(handOff('cook', 'Make dinner.')), usage: { input_tokens: 60, output_tokens: 5 } },
      say('Peeled.', { usage: { input_tokens: 20, output_tokens: 2 } }),
      say('Boiled.', { usage: { input_tokens: 10, output_tokens: 1 } }),
    ],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start({
        persona: {
          name: 'mate',
          handoffs: ['cook'],
          limits: { tokens: 70 },
          steps: [{ name: 'plan', prompt: 'Plan.' }],
        },
        personas: [
          {
            name: 'cook',
            limits: { tokens: 60, max_turns: 2 },
            steps: [
              { name: 'peel', prompt: 'Peel.' },
              { name: 'boil', prompt: 'Boil.' },
            ],
          },
        ],
        limits: { tokens: 1_000, max_turns: 10 },
      });
      await stage.wait(1_000);
    },
  },
  {
    name: 'handoff-rally',
    shows: 'two personas hand a session to each other until the bound: who asks for more is told, and answers itself',
    turns: [
      ...Array.from({ length: BOUNDS.handoffsMax + 1 }, (_, i) =>
        ask(handOff(i % 2 === 0 ? 'cook' : 'mate', 'Your turn.')),
      ),
      say('Mine, then.'),
    ],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
    },
  },
];
