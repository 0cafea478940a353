#!/usr/bin/env bash
# Run the cases, and generate the reports from the log of the run.
# Takes ACTION_FOLDER, ACTION_PROGRAMS, ACTION_LAB, ACTION_BACKEND, ACTION_OPTIONS, ACTION_PATHS,
# ACTION_REPORT, RUNNER_TEMP, and DMLCONF_LAB if set. Sets the outputs exit-code and report.
# Succeeds even if cases fail: the action's last step returns the exit code.
set -euo pipefail

dmlconf() { "$ACTION_PROGRAMS/dmlconf" "$@"; }
run=(dmlconf)
if [ "$ACTION_LAB" = true ]; then
  folder=${DMLCONF_LAB:-$RUNNER_TEMP/dmlconf-lab}
  [ "$(id -u)" = 0 ] && run=() || run=(sudo --preserve-env)
  run+=(env "DMLCONF_LAB=$folder" "$ACTION_PROGRAMS/python" "$ACTION_FOLDER/lab/lab.py" run --)
fi

arguments=(--log "$ACTION_REPORT/run.jsonl")
[ "$ACTION_LAB" != true ] || : "${ACTION_BACKEND:=directml}"
[ -z "$ACTION_BACKEND" ] || arguments+=(--backend "$ACTION_BACKEND")
while IFS= read -r word; do
  [ -z "$word" ] || arguments+=("$word")
done <<< "$ACTION_OPTIONS"
arguments+=(--)
while IFS= read -r word; do
  [ -z "$word" ] || arguments+=("$word")
done <<< "$ACTION_PATHS"

mkdir -p "$ACTION_REPORT"
rm -f "$ACTION_REPORT/run.jsonl"
code=0
"${run[@]}" run "${arguments[@]}" || code=$?
echo "exit-code=$code" >> "$GITHUB_OUTPUT"

if [ -s "$ACTION_REPORT/run.jsonl" ]; then
  echo "report=$ACTION_REPORT" >> "$GITHUB_OUTPUT"
  dmlconf report --quiet "$ACTION_REPORT/run.jsonl" \
    --report "html:$ACTION_REPORT/report.html" --report "junit:$ACTION_REPORT/junit.xml" --report github
fi
