#!/usr/bin/env bash
# Install dmlconf in its own virtual environment.
# Takes ACTION_FOLDER, ACTION_LAB, RUNNER_TEMP; sets the outputs programs, lab-archive and lab-key.
set -euo pipefail

environment=$RUNNER_TEMP/dmlconf-environment
python=$(command -v python3 || command -v python)
"$python" -m venv "$environment"
programs=$environment/bin
[ -d "$programs" ] || programs=$environment/Scripts
"$programs/python" -m pip install --quiet --disable-pip-version-check "$ACTION_FOLDER[html,directml]"
"$programs/dmlconf" --version

{
  echo "programs=$programs"
  if [ "$ACTION_LAB" = true ]; then
    # The lab's directory is named after the digest of its recipe.
    path=$("$programs/python" "$ACTION_FOLDER/lab/lab.py" path)
    echo "lab-archive=$RUNNER_TEMP/dmlconf-lab.tar"
    echo "lab-key=dmlconf-lab-$(basename "$path")"
  fi
} >> "$GITHUB_OUTPUT"
