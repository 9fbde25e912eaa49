#!/bin/sh
# Lets the crew answer a question from the documents in input/. The arguments go to cox run:
#   ./run.sh --model anthropic/claude-sonnet-4-5
set -eu
cd "$(dirname "$0")"

rm -rf work
cp -R input work

COX_MODEL="${COX_MODEL:-scripted/script.yaml}" exec npx cox run \
  "How high above today's chart datum did the flood of February 1953 stand at Marrow Point, and how sure is that?" \
  --persona personas/lead.yaml --crew personas --root work "$@"
