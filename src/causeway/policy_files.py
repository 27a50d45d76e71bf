"""Checks the operator's policy files before oslo.policy reads them.

oslo.policy does not report a broken file: a rule that it can't parse denies everybody, and a file that it can't parse is
ignored, which may allow what the operator wanted to forbid. So a broken file is reported here, with the line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import yaml
from oslo_config import cfg
from oslo_policy import _checks, _parser

from causeway import errors

# How a check refers to another rule.
_REFERENCE = re.compile(r"\brule:([\w:.-]+)")


def files_of(conf: cfg.ConfigOpts) -> list[Path]:
    """Returns the policy files that exist, in the order in which oslo.policy reads them: later ones override earlier ones."""
    options = conf.oslo_policy
    found = conf.find_file(options.policy_file) if options.policy_file else None
    files = [Path(found)] if found else []
    for name in options.policy_dirs:
        folder = conf.find_file(name)
        if folder and Path(folder).is_dir():
            files += sorted(each for each in Path(folder).iterdir() if each.is_file() and not each.name.startswith("."))
    return files


def stamps(conf: cfg.ConfigOpts) -> dict[Path, tuple[int, int]]:
    """Returns when each policy file changed last, and its size: if they differ from an earlier call's, a file has changed."""
    found = {}
    for path in files_of(conf):
        with suppress(FileNotFoundError):
            status = path.stat()
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def check(conf: cfg.ConfigOpts) -> None:
    """Raises Misconfigured if a policy file is broken; the message names the first such file, the line and the reason."""
    for path in files_of(conf):
        _check_file(path)


def unknown(conf: cfg.ConfigOpts, known: Collection[str]) -> list[str]:
    """Returns which rules of the policy files nothing asks, and which rules they refer to that there are not.

    Each with its file, and the name of a rule that is most like it. ``known``: the rules that are asked. The files are valid
    (`check`).
    """
    named: dict[str, Path] = {}
    referred: dict[str, Path] = {}
    for path in files_of(conf):
        for name, rule in (yaml.safe_load(path.read_text()) or {}).items():
            named[str(name)] = path
            referred |= dict.fromkeys(_REFERENCE.findall(str(rule)), path)
    rules = set(known)
    unasked = {name: path for name, path in named.items() if name not in rules and name not in referred}
    missing = {name: path for name, path in referred.items() if name not in rules and name not in named}
    return [
        *(f"{name} in {path}{_meant(name, rules)}" for name, path in sorted(unasked.items())),
        *(f"rule:{name} in {path}{_meant(name, rules | set(named))}" for name, path in sorted(missing.items())),
    ]


def _meant(name: str, rules: Collection[str]) -> str:
    like = difflib.get_close_matches(name, rules, 1)
    return f" (is {like[0]} meant?)" if like else ""


def _check_file(path: Path) -> None:
    try:
        document = yaml.compose(path.read_text(), yaml.SafeLoader)
    except OSError as failure:
        raise errors.Misconfigured(
            f"The policy file {path} can't be read: {failure.strerror}. Make it readable."
        ) from failure
    except UnicodeDecodeError as failure:
        raise errors.Misconfigured(f"The policy file {path} is not UTF-8 text: {failure}.") from failure
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        reason = getattr(failure, "problem", None) or str(failure)
        raise _broken(path, mark.line + 1 if mark is not None else 1, f"this is not YAML: {reason}") from failure
    if document is None:
        return
    if not isinstance(document, yaml.MappingNode):
        raise _broken(path, document.start_mark.line + 1, "rules were expected, each as: name: check")
    for name, rule in document.value:
        if not isinstance(name, yaml.ScalarNode):
            raise _broken(path, name.start_mark.line + 1, "the name of a rule was expected")
        _check_rule(path, name.value, rule)


def _check_rule(path: Path, name: str, node: yaml.Node) -> None:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        # The older form: a list of lists of checks.
        parsed = _parser.parse_rule(yaml.safe_load(yaml.serialize(node)))
        if isinstance(parsed, _checks.FalseCheck) and node.value:
            raise _broken(path, line, f"the check of the rule {name} is not understood")
        return
    if not isinstance(node, yaml.ScalarNode):
        raise _broken(path, line, f"the check of the rule {name} is not text")
    text = node.value.strip()
    if node.tag != "tag:yaml.org,2002:str":
        # An unquoted "!" is one of these: YAML reads it as an empty value, which would allow everybody.
        raise _broken(path, line, f"the check of the rule {name} is not text: put it in quotes")
    if text != "!" and isinstance(_parser.parse_rule(text), _checks.FalseCheck):
        raise _broken(path, line, f"the check of the rule {name} is not understood: {text}")


def _broken(path: Path, line: int, reason: str) -> errors.Misconfigured:
    return errors.Misconfigured(f"The policy file {path} is broken in line {line}: {reason}.")


__all__ = ["check", "files_of", "stamps", "unknown"]
