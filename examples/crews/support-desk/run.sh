#!/bin/sh
# Opens the desk, with its refunds as a process of their own, gives it the tickets in input/tickets as jobs, and stays with it.
# What stands behind it goes to cox run:
#   ./run.sh --model anthropic/claude-sonnet-4-5
set -eu
cd "$(dirname "$0")"
DESK="${DESK:-desk-$(date +%s)}"

rm -rf work
mkdir work
cp -R input/desk work/desk

trap 'kill $started 2>/dev/null || true; wait' EXIT
started=
if ! npx cox health >/dev/null 2>&1; then
  npx cox up >work/up.log 2>&1 &
  started="$started $!"
  until npx cox health >/dev/null 2>&1; do sleep 0.2; done
fi
npx cox serve tool ./refund.ts >work/refund.log 2>&1 &
started="$started $!"
until npx cox tools 2>/dev/null | grep -q '^refund '; do sleep 0.2; done

COX_MODEL="${COX_MODEL:-scripted/script.yaml}" npx cox run "The desk is open." \
  --persona triage --crew personas --id "$DESK" --root work/desk --detach "$@"
for ticket in input/tickets/*.txt; do npx cox followup "$DESK" - <"$ticket"; done

if [ -t 0 ]; then npx cox attach "$DESK"; else npx cox attach "$DESK" --on-ask wait; fi
