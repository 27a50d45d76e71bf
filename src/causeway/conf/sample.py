"""Writes the example configuration: ``python -m causeway.conf.sample > docs/causeway.conf.sample``.

The options of the libraries that read the same file come from these libraries, through oslo-config-generator's own code.
"""

from __future__ import annotations

import io
import sys
from typing import TextIO

from oslo_config import cfg, generator

from causeway.conf import library_defaults

NAMESPACES = ("causeway", "keystonemiddleware.auth_token", "oslo.log", "oslo.messaging", "oslo.policy")


def write(output: TextIO) -> None:
    """Raises RuntimeError if the package's entry points are not installed."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(
        [argument for namespace in NAMESPACES for argument in ("--namespace", namespace)],
        project="oslo-config-generator",
        default_config_files=[],
        default_config_dirs=[],
    )
    text = io.StringIO()
    generator.generate(conf, text)
    output.write(library_defaults.in_sample(text.getvalue()))


if __name__ == "__main__":
    write(sys.stdout)
