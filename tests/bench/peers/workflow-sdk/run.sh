#!/bin/sh
# Runs Vercel's Workflow SDK on the workload of the part `steps`, and prints one line of JSON.
# Needs `initdb` and `postgres` in PATH. It uses no network after the packages are installed.
#
# WORKFLOW_TARGET_WORLD=local keeps the state in files: no Postgres, no fsync, a queue in memory.
# WORKFLOW_AGENT=1 runs the loop of `DurableAgent` instead of a loop of plain steps.
# `WorkflowAgent` of `@ai-sdk/workflow` needs a beta version of the SDK, and Node 22.
STARTED_S=$(date +%s)
export STARTED_S
SESSION=steps
[ -z "$WORKFLOW_AGENT" ] || SESSION=agent
export SESSION
[ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 || exit 1
[ -d "$SESSION/.well-known" ] || (cd "$SESSION" && ../node_modules/.bin/workflow build >&2) || exit 1
exec node driver.mjs
