"""Operations: query parameters. Ours; the answers are made of `causeway.model.progress.OperationProgress`."""

from __future__ import annotations

from causeway.api.request import VersionedSchemas
from causeway.api.schemas import common
from causeway.model.sagas import SagaState

_PAGE = {
    "all": common.once({"type": "string", "enum": ["0", "1"]}),
    "limit": common.once(common.LIMIT),
    "marker": common.once(common.UUID),
}
_RECIPE = {"type": "string", "minLength": 1, "maxLength": 64}
_HOST = {"type": "string", "minLength": 1, "maxLength": 255}
_FILTERS = {
    "server": common.once(common.UUID),
    "recipe": common.many(_RECIPE),
    "state": common.once({"type": "string", "enum": [state.value for state in SagaState]}),
    "host": common.once(_HOST),
    "owner": common.once(_HOST),
}
OF_SERVER: VersionedSchemas = [(1, None, common.query(_PAGE, strict=True))]
LIST: VersionedSchemas = [(1, None, common.query(_PAGE | _FILTERS, strict=True))]
SHOW: VersionedSchemas = [
    (1, None, common.query({"wait": common.once(common.NUMBER), "seen": common.once(common.ANY_STRING)}, strict=True))
]
