#!/usr/bin/env bash
# Make .venv-peers in the root of the repository: the libraries that rangevote is measured against.
#
# They live apart from .venv because mbrs holds numpy, transformers and others at old versions.
# Every step may fail without stopping the next: run.py asks each peer whether it imports, and says
# which is missing and why. Running this again installs only what is not there yet.
#
#   PYTHON=python3.11 benchmarks/setup_peers.sh      # the default is the Python of .venv
set -u
cd "$(dirname "$0")/.."
venv=.venv-peers
log=$venv/setup.log
constraints=benchmarks/peers-constraints.txt
complete=$venv/complete  # newer than this script and the constraints: nothing to do

if [ "$complete" -nt "$constraints" ] && [ "$complete" -nt benchmarks/setup_peers.sh ]; then
  echo "peers: all there"
  exit 0
fi
if [ -z "${PYTHON:-}" ]; then
  PYTHON=python3
  [ -x .venv/bin/python ] && PYTHON=.venv/bin/python
fi
if [ ! -x "$venv/bin/python" ]; then
  "$PYTHON" -m venv "$venv" || exit 1
fi
missing=0
: >"$log"

have() { "$venv/bin/python" -W ignore -c "$1" >/dev/null 2>>"$log"; }

# install NAME TEST REQUIREMENT...: nothing to do where TEST already runs
install() {
  local name=$1 test=$2
  shift 2
  if have "$test"; then
    echo "peers: $name is there"
  elif "$venv/bin/python" -m pip install --quiet -c "$constraints" "$@" >>"$log" 2>&1 && have "$test"; then
    echo "peers: $name installed"
  else
    echo "peers: $name could not be installed or imported; the reason, from $log:" >&2
    grep -iE 'error' "$log" | tail -n 1 >&2
    missing=1
  fi
}

install sacrebleu "import sacrebleu" sacrebleu
install nltk "import nltk" nltk
install fastchrf "import fastchrf" fastchrf
install matplotlib "import matplotlib" matplotlib
# rangevote itself comes from src/ where it runs beside unbabel-comet, which mbrs brings (comet_mbr.py).
install "what rangevote needs" "import msgspec, rich" msgspec rich
# The CPU build of torch goes in before mbrs, so that mbrs does not fetch a CUDA one; where pip finds
# only that, both are left out. mbrs imports pkg_resources, which setuptools dropped in version 81.
wants_cuda() {
  "$venv/bin/python" -m pip install --quiet --dry-run --report - -c "$constraints" torch 2>>"$log" |
    grep -qi '"name": "nvidia'
}
if ! have "import torch" && wants_cuda; then
  echo "peers: torch and mbrs left out: pip finds no CPU build of torch (PIP_FIND_LINKS can name one)" >&2
  missing=1
else
  install torch "import torch" torch "setuptools<81"
fi
if have "import torch"; then
  install mbrs "from mbrs.decoders import DecoderMBR" mbrs "setuptools<81"
fi

# memray counts allocations; it goes into a folder of its own, to be seen by .venv when memory is
# measured, since .venv itself is left as it is.
memray=.benchmarks/memray
if [ ! -d "$memray/memray" ]; then
  if ! "$venv/bin/python" -m pip install --quiet --target "$memray" memray >>"$log" 2>&1; then
    echo "peers: memray could not be installed; memory will be read from the system alone" >&2
    missing=1
  fi
fi

[ $missing = 0 ] && touch "$complete"
exit 0
