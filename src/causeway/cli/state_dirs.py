"""Where the clouds that `causeway up` runs keep everything."""

from __future__ import annotations

from pathlib import Path

import platformdirs

DEFAULT_STATE_DIR = Path(platformdirs.user_data_dir("causeway"))
#: the file in it with which clients reach the cloud
CLOUDS = "clouds.yaml"
