"""Run the paper's experiments: see README.md beside this file.

.venv/bin/python experiments/run.py captions --scale local     # or: make reproduce NAME=captions
.venv/bin/python experiments/run.py translation --list
.venv/bin/python experiments/run.py --render                    # RESULTS.md again, from results/*.json
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # the repository, not this folder

from experiments.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
