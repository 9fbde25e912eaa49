/**
 * A program that hosts a session and lints every JavaScript module that the session has edited. Hooks answer and do not
 * work: this one returns a receipt, and the end of the job reaches the model as feedback before its next answer.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { defineHooks, startCoxswain } from 'coxswain';
import { lint } from './lint.ts';

const scripted = `scripted/${join(import.meta.dirname, 'script.yaml')}`;
const [prompt = 'Write greet.mjs.', model = scripted, folder] = process.argv.slice(2);
const scratch = await mkdtemp(join(tmpdir(), 'lint-after-edit-'));
const root = folder === undefined ? join(scratch, 'root') : resolve(folder);
await mkdir(root, { recursive: true });

const jobs: Promise<unknown>[] = [];
const hooks = defineHooks({
  file_edited: {
    pattern: '*.mjs',
    handler({ path, session }, { idempotencyKey }) {
      // Asked again after a crash, it is the same job.
      const job = { job_id: `lint:${idempotencyKey}`, affected_paths: [path] };
      jobs.push(
        lint(root, path).then(({ status, report }) =>
          coxswain.session(session.id).reportJob({ job: { ...job, status }, body: report }, { wait: 'accepted' }),
        ),
      );
      return { job: { ...job, status: 'queued' } };
    },
  },
});

const coxswain = await startCoxswain({ stateDir: join(scratch, 'state'), hooks });
try {
  const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
  const session = await coxswain.startSession({ prompt, model, root, permissions });
  const { text, stopReason } = await session.result();
  // What is reported after the last answer waits for the session's next prompt.
  await Promise.all(jobs);
  for await (const { record } of session.journal())
    for (const event of record.events) if (event.type === 'feedback_received') console.log(event.body);
  console.log(`${text} (${stopReason})`);
} finally {
  await coxswain.close();
  await rm(scratch, { recursive: true, force: true });
}
