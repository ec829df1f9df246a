#!/usr/bin/env bash
# Ends every process that the workshop started, whatever state the rest is in.
#   ./stop.sh [--purge]      --purge then removes .workshop, with your copies of the notebooks; at a terminal it asks
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
trap '' HUP # the terminal may be one of the JupyterLab that ends here: neither it nor its mark shall end this
if [ -n "${GPUWORKSHOP_SUPERVISED:-}" ]; then exec env -u GPUWORKSHOP_SUPERVISED ./stop.sh "$@"; fi

case "${1:-}" in
  '' | --purge) ;;
  *)
    echo 'usage: ./stop.sh [--purge]' >&2
    exit 2
    ;;
esac
if [ "${1:-}" = --purge ] && [ -t 0 ]; then
  read -r -p 'Remove .workshop, with your copies of the notebooks? [y/N] ' answer
  case $answer in [yY] | [yY]es) ;; *) exit 1 ;; esac
fi
# Where the state is was written down when it was first used.
state=${GPUWORKSHOP_STATE:-$(cat .workshop/state-folder 2>/dev/null || echo .workshop)}
for python in python3 python3.13 python3.12 python3.11 "${PYTHON:-python}" .workshop/venv/bin/python ''; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then break; fi
done
if [ -z "$python" ]; then
  echo 'stop.sh: no Python 3.8 or newer was found; put one on the PATH, or name it: PYTHON=... ./stop.sh' >&2
  exit 1
fi
(set -x && "$python" -I gpuworkshop/processes/reaper.py "$state")
if [ "${1:-}" = --purge ]; then
  (set -x && rm -rf .workshop)
  case $state in
    .workshop | "$PWD/.workshop") ;;
    *) echo "GPUWORKSHOP_STATE is a folder of your choice, so remove it yourself: $state" ;;
  esac
fi
