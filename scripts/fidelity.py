#!/usr/bin/env python3
"""Writes docs/fidelity.md from the data of the study ssdiq2025 in docs/studies/: the last step of `make fidelity`.

    fidelity.py

Needs the package.
"""

import sys
from pathlib import Path

from floatgate.studies import fidelity

DOCS = Path(__file__).resolve().parents[1] / "docs"

if __name__ == "__main__":
    (DOCS / "fidelity.md").write_text(fidelity.page(DOCS / "studies" / "ssdiq2025"), encoding="utf-8")
    sys.exit(0)
