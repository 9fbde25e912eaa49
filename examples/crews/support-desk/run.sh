#!/bin/sh
# Starts the desk, serves its refund tool in a separate process, sends the tickets in input/tickets as jobs, and follows the
# desk. The arguments go to cox run:
#   ./run.sh --model anthropic/claude-sonnet-4-5
set -eu
cd "$(dirname "$0")"
# Called directly and not by npx, so that a signal reaches the process itself.
PATH="$(cd ../../.. && pwd)/node_modules/.bin:$PATH"
DESK="${DESK:-desk-$(date +%s)}"

rm -rf work
mkdir work
cp -R input/desk work/desk

trap 'kill $started 2>/dev/null || true; wait' EXIT
started=
if ! cox health >/dev/null 2>&1; then
  cox up >work/up.log 2>&1 &
  started="$started $!"
  until cox health >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || { cat work/up.log >&2; exit 1; }
    sleep 0.2
  done
fi
cox serve tools ./refund.ts >work/refund.log 2>&1 &
started="$started $!"
until cox tool list 2>/dev/null | grep -q '^refund '; do
  kill -0 $! 2>/dev/null || { cat work/refund.log >&2; exit 1; }
  sleep 0.2
done

COX_MODEL="${COX_MODEL:-scripted/script.yaml}" cox run "The desk is open." \
  --persona personas/triage.yaml --crew personas --id "$DESK" --root work/desk --detach "$@"
for ticket in input/tickets/*.txt; do cox message followup "$DESK" - <"$ticket" >/dev/null; done

if [ -t 0 ]; then cox attach "$DESK"; else cox attach "$DESK" --on-ask wait; fi
