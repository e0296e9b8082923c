#!/bin/sh
# usage: tools/bootstrap.sh SCRIPT.ts [ARGUMENT]...
# Runs one of the project's scripts on the Node that the project pins. It installs the npm dependencies first
# when they are missing or older than the lock file, so that every `npm run` command works from a fresh clone.
# Plain sh: it runs before anything is installed.
set -eu
cd "$(dirname "$0")/.."
stamp=node_modules/.egress-nat-lock
is_installed() { cmp -s package-lock.json "$stamp"; }
install() {
  echo "installing the npm dependencies (package-lock.json changed or node_modules is missing) ..." >&2
  npm ci --no-audit --no-fund --loglevel=error >&2 && cp package-lock.json "$stamp"
}
# One of two commands that begin at the same time installs, the other one waits for it.
is_installed || (flock 9 && { is_installed || install; }) 9<package.json
PATH="$PWD/node_modules/.bin:$PATH"
export PATH
exec node --conditions=source --disable-warning=ExperimentalWarning "$@"
