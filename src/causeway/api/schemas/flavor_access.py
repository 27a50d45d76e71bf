"""Access to private flavors, and extra specs: what may be sent."""

from __future__ import annotations

from causeway.api.request import JsonSchema, VersionedSchemas
from causeway.api.schemas import common

_TENANT: JsonSchema = common.properties(["tenant"], tenant=common.PROJECT_OR_USER_ID)
ADD: VersionedSchemas = [(1, None, common.body("addTenantAccess", _TENANT))]
REMOVE: VersionedSchemas = [(1, None, common.body("removeTenantAccess", _TENANT))]

_KEY = r"^[a-zA-Z0-9-_:. ]{1,255}$"
_VALUE: JsonSchema = {"type": ["string", "number"], "maxLength": 255}
_SPECS: JsonSchema = {"type": "object", "patternProperties": {_KEY: _VALUE}, "additionalProperties": False}
CREATE_SPECS: VersionedSchemas = [(1, None, common.body("extra_specs", _SPECS))]
UPDATE_SPEC: VersionedSchemas = [(1, None, _SPECS | {"minProperties": 1, "maxProperties": 1})]
