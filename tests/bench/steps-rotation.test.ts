import { expect, test } from 'vitest';
import type { PeerRun } from './peers.ts';
import { runInRotation } from './steps-rotation.ts';
import type { OurRun } from './steps-runs.ts';

const OUR_RUN: OurRun = { server: '2.12.0', started: {}, warm: {} };
const PEER_RUN: PeerRun = { versions: {}, durability: 'fsync', machine: { node: 'v24.0.0' } };

/** Runs three rounds. `fails` says whether a peer fails in a round, from 1. @returns the order too. */
async function rounds(fails: (name: string, round: number) => boolean) {
  const order: string[] = [];
  const peer = (name: string) => {
    let round = 0;
    return {
      name,
      async run() {
        order.push(name);
        if (fails(name, ++round)) throw new Error(`${name} has no server`);
        return PEER_RUN;
      },
    };
  };
  const ourRun = async () => {
    order.push('ours');
    return OUR_RUN;
  };
  const runs = await runInRotation(3, { ourRun, peers: [peer('A'), peer('B')] }, [[1, 1]], async () => 0.02);
  return { order, runs };
}

test('each round starts with the next side', async () => {
  const { order, runs } = await rounds(() => false);
  expect(order).toEqual(['ours', 'A', 'B', 'A', 'B', 'ours', 'B', 'ours', 'A']);
  expect(runs.busy_before).toHaveLength(9);
});

test('a peer that fails is not run again; its earlier runs and all others are kept', async () => {
  const { order, runs } = await rounds((name, round) => name === 'A' && round === 2);
  expect(order).toEqual(['ours', 'A', 'B', 'A', 'B', 'ours', 'B', 'ours']);
  expect(runs.ours).toHaveLength(3);
  expect(runs.peers).toEqual([
    { name: 'A', runs: [PEER_RUN], failed: 'A has no server' },
    { name: 'B', runs: [PEER_RUN, PEER_RUN, PEER_RUN], failed: undefined },
  ]);
});
