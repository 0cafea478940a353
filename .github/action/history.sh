#!/usr/bin/env bash
# Add the run to a history, write its pages, and say what the run changed.
# Takes ACTION_PROGRAMS, ACTION_HISTORY and ACTION_REPORT. Sets the outputs site and news.
set -euo pipefail

history() { "$ACTION_PROGRAMS/dmlconf" history "$@" --database "$ACTION_HISTORY"; }

history add "$ACTION_REPORT/run.jsonl"
history site -o "$ACTION_REPORT/history"
history new --markdown > "$ACTION_REPORT/news.md"
cat "$ACTION_REPORT/news.md" >> "$GITHUB_STEP_SUMMARY"
{
  echo "site=$ACTION_REPORT/history"
  echo "news=$ACTION_REPORT/news.md"
} >> "$GITHUB_OUTPUT"
