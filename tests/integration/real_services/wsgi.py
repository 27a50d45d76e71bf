"""gunicorn's entry to a service: ``SERVICE`` names its module, ``SERVICE_ARGUMENTS`` its command line.

The services read sys.argv, and must not see gunicorn's own options there.
"""

import importlib
import os
import sys

sys.argv = [os.environ["SERVICE"], *os.environ.get("SERVICE_ARGUMENTS", "").split()]
application = importlib.import_module(os.environ["SERVICE"]).application
