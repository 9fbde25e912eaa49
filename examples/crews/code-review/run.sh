#!/bin/sh
# Creates the repository of the example again, and lets the crew review its last commit. The arguments go to cox run:
#   ./run.sh --model anthropic/claude-sonnet-4-5
set -eu
cd "$(dirname "$0")"

rm -rf work
git init --quiet work/harbour-fees
git -C work/harbour-fees fast-import --quiet --done <input/harbour-fees.fast-import
git -C work/harbour-fees symbolic-ref HEAD refs/heads/main
git -C work/harbour-fees reset --quiet --hard

COX_MODEL="${COX_MODEL:-scripted/script.yaml}" exec npx cox run "Review the last commit, and have mended what is wrong with it." \
  --persona personas/planner.yaml --crew personas --root work/harbour-fees "$@"
