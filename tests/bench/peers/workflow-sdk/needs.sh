#!/bin/sh
# Prints the programs that the peer needs in PATH, a line each.
[ "$WORKFLOW_TARGET_WORLD" = local ] || printf 'initdb\npostgres\n'
