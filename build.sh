#!/usr/bin/env bash
# Makes what the workshop runs in: a virtual environment, .workshop/venv, with this package in it.
#   ./build.sh [--local|--container] [lab|test|dev|benchmark]
# It is quick when nothing has changed, and after an interruption the next call goes on.
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
PYTHON=${PYTHON:-$(sed -n 's/^\(export \)*PYTHON=\([^#]*\).*/\2/p' .env 2>/dev/null | tr -d "\"'\r" | sed 's/ *$//' || true)}
venv=.workshop/venv
least_free_kb=2000000

fail() {
  printf 'build.sh: %s\n' "$*" >&2
  exit 1
}

find_python() { # print the first Python that will do, or fail saying why none does
  local each said seen=''
  if [ -n "$PYTHON" ]; then set -- "$PYTHON"; else set -- python3.13 python3.12 python3.11 python3; fi
  for each in "$@"; do
    command -v "$each" >/dev/null || continue
    said=$("$each" -c '
import sys
if sys.version_info < (3, 11): sys.exit("is Python %d.%d" % sys.version_info[:2])
try: import ensurepip, venv
except ImportError: sys.exit("has no venv module")
print("will do")' 2>&1 </dev/null) || true
    if [ "$said" = 'will do' ]; then
      printf '%s\n' "$each"
      return
    fi
    seen="$seen; $each ${said##*$'\n'}"
  done
  seen=${seen#; }
  fail "this needs Python 3.11 or newer with its venv module; seen: ${seen:-none of $*}.
On Debian or Ubuntu: apt-get install python3 python3-venv
To use another Python, set PYTHON in .env to its path. Then run ./build.sh again."
}

base() { # what the environment stands on: it has to be made anew when this changes
  printf '%s|%s|%s' "$PWD" "$PYTHON" "$("$venv/bin/python" -V 2>&1 || true)"
}

load_stamp() { # there is none while a build is under way, or after one that did not end well
  had_base='' had_sum='' had=''
  if [ -f "$venv/.stamp" ]; then
    { IFS= read -r had_base && IFS= read -r had_sum && IFS= read -r had; } <"$venv/.stamp" || true
  fi
}

is_built() {
  load_stamp
  case " $had " in
    *" $extra "*) [ "$had_sum" = "$sum" ] && [ "$had_base" = "$(base)" ] ;;
    *) return 1 ;;
  esac
}

make_venv() {
  local python free
  python=$(find_python)
  free=$(df -Pk .workshop | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$least_free_kb" ] ||
    fail "no space: $((free / 1000)) MB are free at $PWD, and the Python packages need up to $((least_free_kb / 1000)) MB.
Make room, then run ./build.sh again."
  if [ -d "$venv" ]; then ./stop.sh >&2 || true; fi # nothing can go on in what is made anew
  rm -rf "$venv"
  (set -x && "$python" -m venv "$venv") ||
    fail "$python cannot make a virtual environment; its last lines say why.
If it misses venv or ensurepip, on Debian or Ubuntu: apt-get install python3-venv. Then run ./build.sh again."
}

build() {
  local each quiet=''
  if [ "$had_base" != "$(base)" ]; then
    make_venv
    had=''
  fi
  rm -f "$venv/.stamp"
  for each in $brings; do
    case " $had " in *" $each "*) ;; *) had="${had:+$had }$each" ;; esac
  done
  echo 'build.sh: installing the Python packages, about 500 MB: a minute or two' >&2
  [ -t 2 ] || quiet=--quiet # in a terminal pip shows its progress
  (set -x && "$venv/bin/python" -m pip install ${quiet:-} --disable-pip-version-check --root-user-action ignore \
    --no-input --editable ".[${had// /,}]") ||
    fail "pip could not install the Python packages; its last lines say why.
If that is the network or a proxy, mend it, then run ./build.sh again."
  printf '%s\n' "$(base)" "$sum" "$had" >"$venv/.stamp"
}

case "${1:-}" in
  --local) shift ;;
  --container)
    echo 'build.sh: the container comes with a later version; this one runs locally: ./run.sh --local' >&2
    exit 2
    ;;
esac
extra=${1:-lab}
case $extra in
  lab) brings='lab' ;;
  test) brings='lab test' ;;
  dev) brings='lab test dev' ;;
  benchmark) brings='lab benchmark' ;;
  *)
    echo 'usage: ./build.sh [--local|--container] [lab|test|dev|benchmark]' >&2
    exit 2
    ;;
esac
sum=$(cksum <pyproject.toml)
if is_built; then exit 0; fi

trap 'echo "build.sh: interrupted; run it again to go on" >&2; exit 130' INT
mkdir -p .workshop
exec 9>.workshop/build.lock
if command -v flock >/dev/null && ! flock -n 9; then
  echo 'build.sh: waiting for another build in this folder' >&2
  flock 9
fi
is_built || build 9>&-
