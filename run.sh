#!/usr/bin/env bash
# Brings the workshop up and prints the address of its JupyterLab; or rehearses the notebooks.
#   ./run.sh [--local|--container] [rehearse [--target TARGET] [NOTEBOOK ...]]
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"

case "${1:-}" in
  --container) exec ./build.sh --container ;;
  --local) shift ;;
esac
case "${1:-}" in
  '') set -- up ;;
  rehearse) ;;
  *)
    echo 'usage: ./run.sh [--local|--container] [rehearse [--target TARGET] [NOTEBOOK ...]]' >&2
    exit 2
    ;;
esac
./build.sh
set -x
exec .workshop/venv/bin/python -m gpuworkshop "$@"
