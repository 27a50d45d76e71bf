"""Reports the progress of a transfer of a disk or an image to the cell's conductor.

The answer may limit the rate from now on: each report divides a drain's rate anew among its moves.
"""

from __future__ import annotations

import logging

import msgspec

from causeway import errors
from causeway.compute.host.bandwidth import Bandwidth
from causeway.compute.host.host import Host
from causeway.context import RequestContext
from causeway.model.outcomes import OperationToken

LOG = logging.getLogger(__name__)

# Seconds between two reports of progress.
REPORT_INTERVAL = 2.0
# Seconds after a failed report until the next one. Waiting for the answer delays the transfer, which must not happen often.
PAUSE_AFTER_FAILURE = 60.0
# The longest pause of a transfer, in seconds: in a longer one the sender would believe that the receiver is dead.
_LONGEST_PAUSE = 10.0


class TransferProgress:
    """A `Progress` that reports bytes done of bytes total for a step, at most every `REPORT_INTERVAL` seconds.

    A report that fails does not fail the transfer, and delays it little. If the transfer is no longer wanted, this ends it by
    raising Cancelled, StateChanged (its server is being deleted), or TakenOver unless ``is_joined``.

    ``at_once``: makes the first report with the first bytes, for one of many short transfers.

    ``is_shown`` False: only asks whether the transfer is wanted; another host of the move reports the progress.

    ``is_joined``: a conductor that takes the operation over joins the transfer, which continues without reports.

    ``follows_rate`` False: ignores rates, because a guest waits for the transfer.
    """

    def __init__(
        self,
        host: Host,
        context: RequestContext,
        token: OperationToken,
        *,
        is_joined: bool,
        is_shown: bool = True,
        at_once: bool = False,
        follows_rate: bool = True,
    ) -> None:
        self._host = host
        self._context = context
        # A report without a step of the move is not written.
        self._token = msgspec.structs.replace(
            token, step=token.step if is_shown else "", heeds_rate=follows_rate and is_shown
        )
        self._is_joined = is_joined
        self._next_report = host.clock.monotonic() + (0.0 if at_once else REPORT_INTERVAL)
        self._bytes_done: int | None = None
        self._share = Bandwidth(0.0, host.stopping, host.clock, _LONGEST_PAUSE)
        self._began = host.clock.monotonic()

    @property
    def bytes_done(self) -> int | None:
        """Returns the bytes that were transferred; None if everything was there already."""
        return self._bytes_done

    def __call__(self, done: int, total: int) -> None:
        came, self._bytes_done = done - (self._bytes_done or 0), done
        self._share.take(max(0, came))
        if self._host.clock.monotonic() < self._next_report:
            return
        pause = PAUSE_AFTER_FAILURE
        try:
            rate = self._host.conductor.report_progress(
                self._context, token=self._token, bytes_done=done, bytes_total=total
            )
            self._share.become(rate or 0.0, self._began, done)
            pause = REPORT_INTERVAL
        except errors.TakenOver:
            if not self._is_joined:
                raise
            pause = float("inf")
        except (errors.Cancelled, errors.StateChanged):
            raise
        except errors.CausewayError as failure:
            # A transfer must not fail because its progress can't be shown.
            LOG.warning("Progress of operation %s was not reported: %s", self._token.migration_uuid, failure.message)
        finally:
            self._next_report = self._host.clock.monotonic() + pause
