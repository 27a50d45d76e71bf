"""``python -m causeway.cli.demo``."""

import warnings

# An indirect dependency imports Eventlet, which warns of itself; nothing here uses it.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

from causeway.cli.demo.command import demo  # noqa: E402

if __name__ == "__main__":
    demo(prog_name="demo")
