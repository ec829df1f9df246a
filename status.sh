#!/usr/bin/env bash
# Shows what runs, and whether it is healthy.
#   ./status.sh [--json]
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"

python=.workshop/venv/bin/python
if "$python" -c 'import click, dotenv, gpuworkshop' 2>/dev/null; then
  set -x
  exec "$python" -m gpuworkshop status "$@"
fi
if [ "${1:-}" = --json ]; then
  stopped='"state": "stopped", "url": "", "pid": null'
  echo "{\"services\": [{\"name\": \"jupyterlab\", $stopped}, {\"name\": \"cluster\", $stopped}, {\"name\": \"prometheus\", $stopped}]}"
else
  printf '%-24s stopped\n' jupyterlab cluster prometheus
  echo 'nothing is built yet: ./run.sh builds and starts it'
fi
