#!/bin/sh
# Runs BullMQ on Redis on the workload of the part `steps`, and prints one line of JSON. Needs `redis-server` in PATH.
[ -d node_modules ] || npm ci --no-audit --no-fund >/dev/null 2>&1 || exit 1
exec node driver.mjs
