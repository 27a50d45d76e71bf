"""Causeway: a compute control plane for clouds that are split into cells."""

from __future__ import annotations

from oslo_service import backend

# oslo.messaging, os-brick and os-vif wait through oslo.service, which takes Eventlet unless something else is chosen before the
# first of them is imported: here, where no module of this package has imported one yet.
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
