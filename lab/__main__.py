"""The entry point of `python -m lab`, which runs the demo."""

from __future__ import annotations

import sys

from incsnap.cli import output
from incsnap.cli.failures import make_interruptible
from lab.demo import demo

if __name__ == "__main__":
    make_interruptible()
    output.set_up_log("info")
    sys.exit(demo.main(prog_name="python -m lab"))
