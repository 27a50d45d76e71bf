"""Operators in extra specs: ``>= 4``, ``s== x``, ``<in> text``, ``<or> a <or> b``, ``<all-in> a b``.

The operators and what they mean are oslo.utils' (`specs_matcher`); ``=`` is "at least", for numbers. Without an operator
the texts must be equal, blanks included.
"""

from __future__ import annotations

from oslo_utils.specs_matcher import op_methods


def matches(value: str, wanted: str) -> bool:
    """Whether a host's value meets the condition of an extra spec. Values that can't be compared (text, numbers) don't."""
    words = wanted.split()
    if not words or words[0] not in op_methods:
        return value == wanted
    operator, operands = words[0], words[1:]
    if not operands:
        return False
    try:
        if operator == "<or>":
            return value in [word for word in operands if word != "<or>"]
        if operator in ("<in>", "s==", "s!=", "s<", "s<=", "s>", "s>="):
            return bool(op_methods[operator](value, " ".join(operands)))
        if operator in ("<all-in>", "<range-in>"):
            return bool(op_methods[operator](value, *operands))
        return bool(op_methods[operator](value, operands[0]))
    except (ValueError, TypeError, SyntaxError):
        return False
