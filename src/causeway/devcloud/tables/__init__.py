"""The tables of devcloud, a module for each service.

Times are UTC text with microseconds, so that they sort as text. Importing this package registers all tables.
"""

from causeway.devcloud.tables import delegation, identity, image, key, limits, network, quota, volume
from causeway.devcloud.tables.base import Base

__all__ = ["Base", "delegation", "identity", "image", "key", "limits", "network", "quota", "volume"]
