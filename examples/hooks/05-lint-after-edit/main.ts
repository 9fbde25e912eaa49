/**
 * A program that hosts a session and lints every JavaScript module that the session has edited. A hook must answer
 * quickly. This one starts a job, and the report of the job reaches the model as feedback before its next answer.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { defineHooks, startCoxswain, startJob } from 'coxswain';
import { lint } from './lint.ts';

const scripted = `scripted/${join(import.meta.dirname, 'script.yaml')}`;
const [prompt = 'Write greet.mjs.', model = scripted, folder] = process.argv.slice(2);
const scratch = await mkdtemp(join(tmpdir(), 'lint-after-edit-'));
const root = folder === undefined ? join(scratch, 'root') : resolve(folder);
await mkdir(root, { recursive: true });

const jobs: Promise<unknown>[] = [];
const hooks = defineHooks({
  FileEdited: {
    pattern: '*.mjs',
    handler({ path, session }, { idempotencyKey }) {
      // If the hook is asked again after a crash, the id is that of the same job.
      const job = { jobId: `lint:${idempotencyKey}`, affectedPaths: [path] };
      jobs.push(
        lint(root, path).then(({ status, report }) =>
          coxswain.session(session.id).reportJob({ job: { ...job, status }, body: report }, { wait: 'accepted' }),
        ),
      );
      return startJob(job);
    },
  },
});

const coxswain = await startCoxswain({ stateDir: join(scratch, 'state'), hooks });
try {
  const permissions = { rules: [{ tool: '*', action: 'allow' as const }] };
  const session = await coxswain.startSession({ prompt, model, root, permissions });
  const { text, stopReason } = await session.result();
  // A report after the last answer waits for the next prompt of the session.
  await Promise.all(jobs);
  for await (const { record } of session.journal())
    for (const event of record.events) if (event.type === 'feedback_received') console.log(event.body);
  console.log(`${text} (${stopReason})`);
} finally {
  await coxswain.close();
  await rm(scratch, { recursive: true, force: true });
}
