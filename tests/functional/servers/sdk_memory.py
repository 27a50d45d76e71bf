"""What the SDK works out anew for each answer, though it is always the same: here it does so once.

It looks through all classes of a resource for its attributes, compares each part of an answer with each of them, and copies the
table of all services' types. That is half of what `get_server` takes of the processor.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from openstack import fields
from openstack.config import cloud_region
from openstack.resource import Resource

ServiceTypes: Any = cloud_region.os_service_types.ServiceTypes
Found = tuple[tuple[str, fields._BaseComponent], ...]
Components = type[fields._BaseComponent] | tuple[type[fields._BaseComponent], ...]
# name in an answer -> name of the attribute
Names = MutableMapping[str, Any]


@dataclass(frozen=True)
class _Lookup:
    """``names_of``: by both of its names in lower case, in which order the attributes are."""

    names: Names
    attributes: frozenset[str]
    names_of: dict[str, list[str]]

    @classmethod
    def of(cls, names: Names) -> _Lookup:
        names_of = defaultdict(list)
        for name, attribute in names.items():
            for known in {name.lower(), attribute.lower()}:
                names_of[known].append(name)
        return cls(names, frozenset(names.values()), dict(names_of))


_look = Resource._attributes_iterator.__func__
_map = Resource._get_mapping.__func__
_consume = Resource._consume_attrs
_all_types = ServiceTypes.get_all_types

_found: dict[tuple[type[Resource], Components], Found] = {}
_mappings: dict[tuple[type[Resource], type[fields._BaseComponent]], Names] = {}
# By the identity of a mapping that is kept above.
_lookups: dict[int, _Lookup] = {}


def _remembered(cls: type[Resource], components: Components = (fields.Body, fields.Header)) -> Iterator[Any]:
    key = cls, components
    if key not in _found:
        _found[key] = tuple(_look(cls, components))
    return iter(_found[key])


def _mapped(cls: type[Resource], component: type[fields._BaseComponent]) -> Names:
    key = cls, component
    if key not in _mappings:
        names = _mappings[key] = _map(cls, component)
        _lookups[id(names)] = _Lookup.of(names)
    return _mappings[key]


def _consumed(self: Resource, mapping: Names, attrs: MutableMapping[str, Any]) -> dict[str, Any]:
    lookup = _lookups.get(id(mapping))
    if lookup is None:
        return dict(_consume(self, mapping, attrs))
    found, consumed = {}, []
    for key, value in attrs.items():
        if key in lookup.attributes or mapping.get(key):
            for name in lookup.names_of.get(key.lower(), ()):
                found[name] = value
                consumed.append(key)
    for key in set(consumed):
        attrs.pop(key)
    return found


@functools.cache
def _types_of(service_type: str) -> tuple[str, ...]:
    return tuple(_all_types(ServiceTypes(), service_type))


def _all_types_of(_self: Any, service_type: str) -> list[str]:
    return list(_types_of(service_type))


def remember() -> None:
    """In this process, for all resources: no class of the SDK gets further attributes."""
    Resource._attributes_iterator = classmethod(_remembered)
    Resource._get_mapping = classmethod(_mapped)
    Resource._consume_attrs = _consumed
    ServiceTypes.get_all_types = _all_types_of
