#!/usr/bin/env bash
# Installs what the tests need, then runs the linters and the tests.
#   ./test.sh [--full] [PYTEST ARGUMENTS]      --full adds the long tests; with arguments, pytest runs alone
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"

has_browser() {
  command -v chromium || command -v chromium-browser || command -v google-chrome ||
    compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium-*/*/chrome"
} >/dev/null

install_browser() {
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    local packages='chromium fonts-dejavu-core'
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # two words
    (set -x && apt-get install -y -qq --no-install-recommends $packages) ||
      (set -x && apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages) || true
  fi
  has_browser || (set -x && playwright install chromium) || true
}

lint() (
  set -x
  shellcheck ./*.sh .ci/run
  ruff check .
  ruff format --check .
  mypy
  lint-imports
)

marks='not full'
if [ "${1:-}" = --full ]; then
  marks=''
  shift
fi
./build.sh dev
PATH=$PWD/.workshop/venv/bin:$PATH
has_browser || install_browser
if ! has_browser; then
  echo 'test.sh: no Chromium, and none can be installed: the browser tests are skipped' >&2
  if [ "${CI:-}" = true ]; then exit 1; fi
fi

if [ $# -eq 0 ]; then lint; fi
set -x
exec pytest -m "$marks" "$@"
