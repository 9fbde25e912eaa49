#!/bin/sh
# Runs Vercel's Workflow SDK on the workload of the part `steps`, and prints one line of JSON.
# Needs `initdb` and `postgres` in PATH. It uses no network after the packages are installed.
#
# WORKFLOW_TARGET_WORLD=local keeps the state in files: no Postgres, no fsync, a queue in memory.
# WORKFLOW_AGENT=1 runs `WorkflowAgent` of `@ai-sdk/workflow` instead of a loop of plain steps. It needs Node 22.
STARTED_S=$(date +%s)
export STARTED_S
SESSION=steps
[ -z "$WORKFLOW_AGENT" ] || SESSION=agent
export SESSION
if [ $SESSION = agent ] && [ "$(node -p 'parseInt(process.versions.node)')" -lt 22 ]; then
  echo "WORKFLOW_AGENT=1 needs Node 22 or later, not $(node --version)"
  exit 1
fi
[ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 || exit 1
[ -d "$SESSION/.well-known" ] || (cd "$SESSION" && ../node_modules/.bin/workflow build >&2) || exit 1
exec node driver.mjs
