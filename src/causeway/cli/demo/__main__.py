"""``python -m causeway.cli.demo``."""

import warnings

# A library of a library still knows eventlet, which warns of itself when it is imported; nothing here uses it.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

from causeway.cli.demo.command import demo  # noqa: E402

if __name__ == "__main__":
    demo(prog_name="demo")
