#!/usr/bin/env bash
# Install what the benchmarks compare with, each into a virtual environment of its own in the root of the
# repository, because their versions differ from those in .venv (mbrs pins an old numpy and transformers):
#
#   benchmarks/setup.sh peers|potato|optillm      # PYTHON=... if not the Python of .venv
#
# A step that fails does not stop the next one: the benchmark reports what is missing in its rows. Running this
# again installs only what is missing.
set -u
cd "$(dirname "$0")/.."
what=$1
venv=.venv-$what
log=$venv/setup.log
complete=$venv/complete # newer than this script and the constraints: nothing to do
constraints=$([ "$what" = peers ] && echo benchmarks/peers-constraints.txt || echo constraints.txt)

if [ "$complete" -nt "$constraints" ] && [ "$complete" -nt "$0" ]; then
  exit 0
fi
if [ -z "${PYTHON:-}" ]; then
  PYTHON=python3
  [ -x .venv/bin/python ] && PYTHON=.venv/bin/python
fi
[ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv" || exit 1
missing=0
: >"$log"

have() { "$venv/bin/python" -W ignore -c "$1" >/dev/null 2>>"$log"; }
pip() { "$venv/bin/python" -m pip install --quiet "$@" >>"$log" 2>&1; }

# install NAME TEST PIP-ARGUMENTS...: nothing to do where TEST already runs
install() {
  local name=$1 test=$2
  shift 2
  if have "$test" || { pip -c "$constraints" "$@" && have "$test"; }; then
    echo "$what: $name is installed"
  else
    echo "$what: $name could not be installed or imported; the reason, from $log:" >&2
    grep -iE 'error' "$log" | tail -n 1 >&2
    missing=1
  fi
}

wants_cuda() {
  "$venv/bin/python" -m pip install --quiet --dry-run --report - -c "$constraints" torch 2>>"$log" |
    grep -qi '"name": "nvidia'
}

peers() {
  install sacrebleu "import sacrebleu" sacrebleu
  install nltk "import nltk" nltk
  install fastchrf "import fastchrf" fastchrf
  install matplotlib "import matplotlib" matplotlib
  # rangevote itself is imported from src/ beside unbabel-comet, which mbrs installs (comet_mbr.py)
  install "what rangevote needs" "import msgspec, rich" msgspec rich
  # The CPU build of torch is installed before mbrs, so that mbrs does not fetch a CUDA one; where pip finds
  # only that, both are left out. mbrs imports pkg_resources, which setuptools dropped in version 81.
  if ! have "import torch" && wants_cuda; then
    echo "peers: torch and mbrs left out: pip finds no CPU build of torch (PIP_FIND_LINKS can name one)" >&2
    missing=1
  else
    install torch "import torch" torch "setuptools<81"
    have "import torch" && install mbrs "from mbrs.decoders import DecoderMBR" mbrs "setuptools<81"
  fi
  # memray counts allocations in .venv, where it must not be installed: it gets a folder of its own
  if [ ! -d .benchmarks/memray/memray ] && ! pip --target .benchmarks/memray memray; then
    echo "peers: memray could not be installed; memory will be read from the system alone" >&2
    missing=1
  fi
}

potato() {
  install Potato "from importlib.metadata import version; assert version('potato-annotation') == '2.12.1'" \
    potato-annotation==2.12.1
}

# Only what optillm's server imports for best-of-n and self-consistency: all its requirements would bring torch
# for graphics cards. Plugins that miss something say so in its log and are left out.
optillm() {
  install "what optillm needs" "import flask, openai, networkx, z3, sympy, math_verify" flask openai \
    cerebras_cloud_sdk networkx numpy "z3-solver<=4.15.4.0" sympy requests PyYAML aiohttp math-verify
  install optillm "from importlib.metadata import version; assert version('optillm') == '0.4.0'; import optillm" \
    --no-deps optillm==0.4.0
}

"$what"
[ $missing = 0 ] && touch "$complete"
exit 0
