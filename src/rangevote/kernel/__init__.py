"""The counting kernels: compiled where they were built, plain Python everywhere else.

`rangevote._kernels` (C++, sources in `kernels/`) and `rangevote.kernel.plain` offer the same names
and give the same bits. `RANGEVOTE_PURE=1` in the environment chooses the plain ones.
"""

from __future__ import annotations

import os

__all__ = ["COMPILED", "PURE", "WHY_PLAIN", "Election", "Index", "softmax", "usual_columns"]

#: Whether the plain kernels were asked for.
PURE = os.environ.get("RANGEVOTE_PURE", "0") not in ("", "0")

#: Whether the compiled kernels are in use.
COMPILED = False
#: Why they are not, or the empty string.
WHY_PLAIN = ""

if PURE:
    WHY_PLAIN = "RANGEVOTE_PURE is set"
else:
    try:
        from rangevote._kernels import Election, Index, softmax, usual_columns

        COMPILED = True
    except ImportError:
        WHY_PLAIN = (
            "the package was installed without its compiled kernels; results are the same, elections "
            "slower. Install a C++17 compiler and reinstall: pip install --force-reinstall rangevote"
        )

if not COMPILED:
    # elections are held, and columns made, the general way, with the same bits
    Election = usual_columns = None  # type: ignore[assignment, misc]
    from rangevote.kernel.plain import Index, softmax  # type: ignore[assignment]
