#!/usr/bin/env bash
# Restore the lab from the archive of an earlier run, or build it and write the archive.
# Takes ACTION_FOLDER, ACTION_PROGRAMS, ACTION_ARCHIVE, RUNNER_TEMP, and DMLCONF_LAB if set.
set -euo pipefail

folder=${DMLCONF_LAB:-$RUNNER_TEMP/dmlconf-lab}
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo --preserve-env)
lab() { "${as_root[@]}" env "DMLCONF_LAB=$folder" "$ACTION_PROGRAMS/python" "$ACTION_FOLDER/lab/lab.py" "$@"; }

path=$(lab path)
if [ -f "$ACTION_ARCHIVE" ] && [ ! -d "$path" ]; then
  mkdir -p "$folder"
  "${as_root[@]}" tar --extract --numeric-owner --file "$ACTION_ARCHIVE" --directory "$folder"
fi
lab build
lab check
if [ ! -f "$ACTION_ARCHIVE" ]; then
  # Only root can read the whole tree, but the cache is written by the runner's user.
  "${as_root[@]}" tar --create --numeric-owner --file "$ACTION_ARCHIVE.part" \
    --directory "$folder" "$(basename "$path")"
  "${as_root[@]}" chown "$(id -u):$(id -g)" "$ACTION_ARCHIVE.part"
  mv "$ACTION_ARCHIVE.part" "$ACTION_ARCHIVE"
fi
