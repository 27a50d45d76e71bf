"""What every process counts and times for Prometheus.

Counting costs a microsecond or two and happens whether somebody reads it or not; ``[metrics] enabled`` opens the endpoint
(`causeway.metrics.endpoint`). What can be read from the journal is read when Prometheus asks, not kept
(`causeway.operations.metrics`).

Every metric has labels, all of them from small fixed sets: names of steps, routes, methods, filters; never an id or the
name of a server or host. (Values of labels are made when they are first counted, which is what lets the API's workers
count into files that any of them can add up.)

| metric | labels |
|---|---|
| causeway_operations (conductors; from the journal) | recipe, state, step |
| causeway_operations_ended_total, causeway_operation_seconds | recipe, state |
| causeway_operation_step_seconds | recipe, step, phase, state |
| causeway_operation_takeovers_total | recipe |
| causeway_move_bytes_total (computes) | direction: sent, received |
| causeway_rpc_call_seconds (who asks) | topic, method, outcome: ok, error, timeout |
| causeway_rpc_served_seconds (who answers) | topic, method, outcome: ok, error |
| causeway_rpc_waiting, causeway_rpc_running | topic |
| causeway_rpc_checked_messages_total (with trusted keys) | topic, outcome: signed, unsigned, or the reason of a refusal: missing,
  unknown_key, wrong, other_receiver, too_old, not_allowed |
| causeway_database_connections_in_use | database: api, cell |
| causeway_scheduler_seconds | outcome: placed, no_valid_host, error |
| causeway_scheduler_refusals_total | filter |
| causeway_api_request_seconds | method, route, status |
| causeway_certificate_expiry_timestamp_seconds (computes) | file: the path of each file with certificates that the host uses |
"""

from __future__ import annotations

import time
from types import TracebackType

from prometheus_client import Counter, Gauge, Histogram

from causeway import errors

# Seconds: from a request to a long move.
QUICK = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LONG = (0.05, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0)

OPERATIONS_ENDED = Counter("causeway_operations_ended", "Operations that came to their end here.", ["recipe", "state"])
OPERATION_SECONDS = Histogram(
    "causeway_operation_seconds", "From request to end of an operation.", ["recipe", "state"], buckets=LONG
)
STEP_SECONDS = Histogram(
    "causeway_operation_step_seconds",
    "Steps of operations, done or undone.",
    ["recipe", "step", "phase", "state"],
    buckets=LONG,
)
TAKEOVERS = Counter(
    "causeway_operation_takeovers", "Operations taken over whose lease another conductor let run out.", ["recipe"]
)
MOVE_BYTES = Counter("causeway_move_bytes", "Bytes of servers' disks that this host sent or received.", ["direction"])
RPC_CALLS = Histogram(
    "causeway_rpc_call_seconds", "Calls, as who asks sees them.", ["topic", "method", "outcome"], buckets=QUICK
)
RPC_SERVED = Histogram(
    "causeway_rpc_served_seconds",
    "Calls and casts, as who answers sees them.",
    ["topic", "method", "outcome"],
    buckets=QUICK,
)
RPC_WAITING = Gauge("causeway_rpc_waiting", "Requests that came and that no thread works on yet.", ["topic"])
RPC_RUNNING = Gauge("causeway_rpc_running", "Requests that threads work on.", ["topic"])
RPC_CHECKED = Counter(
    "causeway_rpc_checked_messages",
    "Messages whose signature was looked for: carried out (signed, unsigned), or refused for what reason.",
    ["topic", "outcome"],
)
DATABASE_CONNECTIONS = Gauge(
    "causeway_database_connections_in_use",
    "Connections that the pools of this process have given to somebody.",
    ["database"],
    multiprocess_mode="livesum",
)
SCHEDULER_SECONDS = Histogram("causeway_scheduler_seconds", "Decisions of the scheduler.", ["outcome"], buckets=QUICK)
SCHEDULER_REFUSALS = Counter(
    "causeway_scheduler_refusals", "Hosts that were refused, by what refused them.", ["filter"]
)
API_SECONDS = Histogram(
    "causeway_api_request_seconds", "Requests to the API.", ["method", "route", "status"], buckets=QUICK
)
CERTIFICATE_EXPIRY = Gauge(
    "causeway_certificate_expiry_timestamp_seconds",
    "When the first certificate in this file expires, in seconds since 1970.",
    ["file"],
)


class Timed:
    """Observes how long its block took, and how it ended, as the last label: ``outcome``, or ``failure`` if it raises."""

    __slots__ = ("_began", "_histogram", "_labels", "failure", "outcome")

    def __init__(self, histogram: Histogram, *labels: str) -> None:
        self._histogram = histogram
        self._labels = labels
        self.outcome = "ok"
        self.failure: str | None = None

    def __enter__(self) -> Timed:
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _failure: BaseException | None, _where: TracebackType | None
    ) -> None:
        if kind is not None:
            self.outcome = self.failure or ("timeout" if issubclass(kind, errors.RpcTimeout) else "error")
        self._histogram.labels(*self._labels, self.outcome).observe(time.perf_counter() - self._began)
