#!/usr/bin/env bash
# Opens the workshop's shell, with its Python, tools and KUBECONFIG; or runs one command there.
#   ./exec.sh [COMMAND ...]
set -euo pipefail
case "${1:-}" in
  -h | --help)
    echo 'usage: ./exec.sh [COMMAND ...]      the workshop shell, or one command in it'
    exit
    ;;
esac
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

"$root/build.sh" </dev/null >&2
state=${GPUWORKSHOP_STATE:-$(cat "$root/.workshop/state-folder" 2>/dev/null || echo .workshop)}
case $state in /*) ;; *) state=$root/$state ;; esac
for bin in "$state"/tools/*/bin "$root/.workshop/venv/bin"; do
  if [ -d "$bin" ]; then PATH=$bin:$PATH; fi
done
export PATH
export KUBECONFIG=$state/lab/kubeconfig # also when it is not there: never the learner's own cluster
export HELM_CONFIG_HOME=$state/helm/config HELM_CACHE_HOME=$state/helm/cache HELM_DATA_HOME=$state/helm/data
if [ $# -eq 0 ]; then set -- "${SHELL:-bash}"; fi
set -x
exec "$@"
