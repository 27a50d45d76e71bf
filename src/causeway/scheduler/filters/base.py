"""The base class of filters, and the request that they get."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from oslo_config.cfg import ConfigOpts

from causeway.scheduler.explain import Refusal
from causeway.scheduler.host_state import HostState
from causeway.scheduler.request import RequestSpec


@dataclass
class Request:
    """A request, and everything that was looked up for it.

    ``group_hosts``: host -> members of the server's group there, the server itself not counted. ``own_host``: where the
    server is now (only looked up if it is in a group). ``instance_hosts``: hosts of the servers that hints name.
    """

    spec: RequestSpec
    group_hosts: dict[str, int] = field(default_factory=dict)
    own_host: str | None = None
    instance_hosts: dict[str, str] = field(default_factory=dict)


class HostFilter(ABC):
    """Says whether a host may serve a request. Has no state but its options."""

    def __init__(self, conf: ConfigOpts) -> None:
        self.options = conf.filter_scheduler

    @property
    def name(self) -> str:
        """Its name in ``[filter_scheduler]enabled_filters``."""
        return type(self).__name__

    @abstractmethod
    def check(self, host: HostState, request: Request) -> Refusal | None:
        """Returns None if the host may serve the request, else why not."""
