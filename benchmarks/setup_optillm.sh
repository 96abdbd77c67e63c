#!/usr/bin/env bash
# Make .venv-optillm in the root of the repository: optillm, beside which service.py measures `rangevote serve`.
#
# It lives apart from .venv, so that its versions disturb nobody. Only what its server imports for best-of-n and
# self-consistency is installed: all that it asks for would bring torch and with it gigabytes for graphics cards.
# Plugins that miss something then say so in its log and are left out. Where it cannot be installed service.py
# says so in its rows and measures the rest.
#
#   PYTHON=python3.11 benchmarks/setup_optillm.sh     # the default is the Python of .venv
set -u
cd "$(dirname "$0")/.."
venv=.venv-optillm
log=$venv/setup.log
wanted=optillm==0.4.0
needed="flask openai cerebras_cloud_sdk networkx numpy z3-solver<=4.15.4.0 sympy requests PyYAML aiohttp math-verify"

if [ -z "${PYTHON:-}" ]; then
  PYTHON=python3
  [ -x .venv/bin/python ] && PYTHON=.venv/bin/python
fi
if [ ! -x "$venv/bin/python" ]; then
  "$PYTHON" -m venv "$venv" || exit 1
fi
pip="$venv/bin/python -m pip"
if $pip freeze 2>/dev/null | grep -qx "$wanted" && "$venv/bin/python" -c "import optillm" 2>/dev/null; then
  echo "optillm: all there"
elif $pip install --quiet -c constraints.txt $needed >"$log" 2>&1 &&
  $pip install --quiet --no-deps "$wanted" >>"$log" 2>&1 &&
  "$venv/bin/python" -c "import optillm" >>"$log" 2>&1; then
  echo "optillm: installed"
else
  echo "optillm: could not be installed; the reason, from $log:" >&2
  grep -iE 'error' "$log" | tail -n 1 >&2
fi
exit 0
