/** The suite with one fault planted: `COX_FAULT` names it. */
import { join, resolve } from 'node:path';
import { mergeConfig } from 'vitest/config';
import { suite } from '../../vitest.config.ts';
import { PLANTED_FAULTS, sourceOf } from './planted-faults.ts';

const fault = PLANTED_FAULTS.find(({ name }) => name === process.env.COX_FAULT);
if (!fault) throw new Error(`COX_FAULT names no planted fault: ${process.env.COX_FAULT}`);
const repository = resolve(import.meta.dirname, '../..');
const faulty = join(repository, sourceOf(fault));

const planted = mergeConfig(suite, {
  plugins: [
    {
      name: 'planted-fault',
      enforce: 'pre',
      transform(code: string, id: string) {
        return id === faulty ? code.replace(fault.find, () => fault.instead) : null;
      },
    },
  ],
});
planted.root = repository;
planted.test.reporters = ['json'];
export default planted;
