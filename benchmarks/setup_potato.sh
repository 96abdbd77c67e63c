#!/usr/bin/env bash
# Make .venv-potato in the root of the repository: Potato, beside which pages.py measures `rangevote study`.
#
# It lives apart from .venv, so that its size can be measured and its versions disturb nobody. Where it
# cannot be installed pages.py says so in its rows and measures the rest.
#
#   PYTHON=python3.11 benchmarks/setup_potato.sh      # the default is the Python of .venv
set -u
cd "$(dirname "$0")/.."
venv=.venv-potato
log=$venv/setup.log
wanted=potato-annotation==2.12.1

if [ -z "${PYTHON:-}" ]; then
  PYTHON=python3
  [ -x .venv/bin/python ] && PYTHON=.venv/bin/python
fi
if [ ! -x "$venv/bin/python" ]; then
  "$PYTHON" -m venv "$venv" || exit 1
fi
if "$venv/bin/python" -m pip freeze 2>/dev/null | grep -qx "$wanted"; then
  echo "potato: all there"
elif "$venv/bin/python" -m pip install --quiet "$wanted" >"$log" 2>&1; then
  echo "potato: installed"
else
  echo "potato: could not be installed; the reason, from $log:" >&2
  grep -iE 'error' "$log" | tail -n 1 >&2
fi
exit 0
