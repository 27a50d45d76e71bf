"""Reads in the code of the API which rules of policy it asks for."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import FunctionType, ModuleType

import causeway

ROOT = Path(causeway.__file__).parent
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
Function = ast.FunctionDef | ast.Lambda
# Methods of a request whose first argument is a rule.
_ASKS = ("authorize", "allows")


class Unreadable(Exception):
    """A rule is put together in a way that this reader does not follow."""


@dataclass(frozen=True)
class Scope:
    """A place in the code. ``functions``: those around it, the innermost first."""

    module: ModuleType
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Call:
    node: ast.Call
    scope: Scope


class Code:
    """Some modules, parsed. Follows a rule from where it is asked for to where it is written, through parameters of functions."""

    def __init__(self, modules: dict[ModuleType, ast.Module]) -> None:
        self._asked: list[Call] = []
        # Name of a function or method -> calls of it.
        self._calls: dict[str, list[Call]] = defaultdict(list)
        for module, tree in modules.items():
            for call in _calls_in(tree, Scope(module, ())):
                name = _name_of(call.node.func)
                self._calls[name].append(call)
                if (
                    name in _ASKS
                    and isinstance(call.node.func, ast.Attribute)
                    and _name_of(call.node.func.value) == "request"
                ):
                    self._asked.append(call)

    @classmethod
    def of(cls, names: list[str]) -> Code:
        modules = [importlib.import_module(name) for name in names]
        return cls({module: ast.parse(Path(str(module.__file__)).read_text()) for module in modules})

    def rules(self) -> dict[str, set[str]]:
        """Each rule with the places, ``module:line``, that ask for it. Raises Unreadable."""
        found: dict[str, set[str]] = defaultdict(set)
        for call in self._asked:
            place = f"{call.scope.module.__name__}:{call.node.lineno}"
            for rule in self._values(call.node.args[0], call.scope, place):
                found[rule].add(place)
        return dict(found)

    def _values(self, node: ast.expr, scope: Scope, place: str) -> set[str]:
        """All texts that an expression can have."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return {node.value}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = (self._values(node.left, scope, place), self._values(node.right, scope, place))
            return {"".join(pair) for pair in product(*parts)}
        if isinstance(node, ast.JoinedStr):
            parts_of = [self._values(part, scope, place) for part in node.values]
            return {"".join(some) for some in product(*parts_of)}
        if isinstance(node, ast.FormattedValue):
            return self._values(node.value, scope, place)
        if isinstance(node, ast.IfExp):
            return self._values(node.body, scope, place) | self._values(node.orelse, scope, place)
        if isinstance(node, ast.Name):
            return self._values_of_name(node.id, scope, place)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = getattr(scope.module, node.value.id, None)
            value = getattr(owner, node.attr, None)
            if isinstance(value, str):
                return {value}
        raise Unreadable(f"{place}: {ast.unparse(node)}")

    def _values_of_name(self, name: str, scope: Scope, place: str) -> set[str]:
        for depth, function in enumerate(scope.functions):
            around = Scope(scope.module, scope.functions[depth:])
            assigned = _assigned(function, name)
            if assigned:
                return set().union(*(self._values(value, around, place) for value in assigned))
            if name in _parameters(function):
                return self._values_given(function, name, scope.module, place)
        value = getattr(scope.module, name, None)
        if not isinstance(value, str):
            raise Unreadable(f"{place}: {name} in {scope.module.__name__}")
        return {value}

    def _values_given(self, function: Function, parameter: str, module: ModuleType, place: str) -> set[str]:
        """What a parameter is in all calls of its function."""
        if isinstance(function, ast.Lambda):
            raise Unreadable(f"{place}: {ast.unparse(function)}")
        found: set[str] = set()
        for call in self._calls[function.name]:
            if _module_called(call) != module.__name__:
                continue
            given = _argument(call.node, function, parameter)
            if given is None:
                raise Unreadable(f"{place}: {function.name} in {call.scope.module.__name__}:{call.node.lineno}")
            found |= self._values(given, call.scope, place)
        if not found:
            raise Unreadable(f"{place}: nothing calls {function.name}")
        return found


def modules_of_the_api() -> list[str]:
    """The modules of the API."""
    files = sorted((ROOT / "api").rglob("*.py"))
    return [
        ".".join(("causeway", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for file in files
    ]


def _calls_in(node: ast.AST, scope: Scope) -> Iterator[Call]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield Call(child, scope)
        inside = Scope(scope.module, (child, *scope.functions)) if isinstance(child, _FUNCTIONS) else scope
        yield from _calls_in(child, inside)


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _module_called(call: Call) -> str | None:
    """The module of the function that is called; None if it is no function of a module."""
    function, module = call.node.func, call.scope.module
    name = _name_of(function)
    if isinstance(function, ast.Name):
        # What is no name of the module is a function inside of a function.
        called = getattr(module, name, None)
        return str(called.__module__) if isinstance(called, FunctionType) else module.__name__
    called = (
        getattr(getattr(module, _name_of(function.value), None), name, None)
        if isinstance(function, ast.Attribute)
        else None
    )
    return str(called.__module__) if isinstance(called, FunctionType) else None


def _parameters(function: Function) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _argument(call: ast.Call, function: ast.FunctionDef, parameter: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = _parameters(function)
    position = names.index(parameter)
    if position < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args[: position + 1]):
        return call.args[position]
    defaults = dict(
        zip(reversed([one.arg for one in function.args.args]), reversed(function.args.defaults), strict=False)
    )
    defaults |= {
        one.arg: value for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if value
    }
    return defaults.get(parameter)


def _assigned(function: Function, name: str) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return []
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs += [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs.append((node.target, node.value))
    for target, value in list(pairs):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs += zip(target.elts, value.elts, strict=False)
    return [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
