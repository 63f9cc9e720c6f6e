"""Settings by name: from a word and some values to a checked object, with messages a person can act on."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from penstock.errors import ConfigError

T = TypeVar("T")
# `name, name: text`, and what is indented below it
_LINE = re.compile(r"^( *)((?:\w+, )*\w+): (\S.*(?:\n\1 +\S.*)*)$", re.MULTILINE)
_WORDS = {int: "a whole number", float: "a finite number", str: "a text", bool: "true or false", type(None): "unset"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a class, as help shows it. `default` is None for a setting that has to be given."""

    name: str
    type: str
    default: object
    doc: str


def build(kind: str, known: Mapping[str, type[T]], name: str, config: Mapping[str, object]) -> T:
    """An object of the class that `known` has under `name`, or a ConfigError that says what is wrong.

    >>> build("number", {"complex": complex}, "komplex", {})
    Traceback (most recent call last):
    penstock.errors.ConfigError: number must be one of complex, got 'komplex'; did you mean 'complex'?
    """
    one_of(kind, known, name)
    cls = known[name]
    hints = get_type_hints(cls)
    settings = {f.name: f for f in _settings(cls)}
    for key, value in config.items():
        if key not in settings:
            known_ones = f"be a parameter of {name} ({', '.join(settings)})"
            rule = known_ones if settings else f"be left out, as {name} takes no parameters"
            raise ConfigError(f"{name}.{key} must {rule}, got {value!r}{_nearest(key, settings)}")
    missing = [key for key, f in settings.items() if key not in config and not _optional(f)]
    if missing:
        raise ConfigError(f"{name}.{missing[0]} must be given, got nothing")
    try:
        return cls(**{key: _fit(f"{name}.{key}", value, hints[key]) for key, value in config.items()})
    except ConfigError as error:  # a rule of the class itself names only the field
        message = str(error)
        raise ConfigError(message if message.startswith(f"{name}.") else f"{name}.{message}") from None


def one_of(kind: str, known: Iterable[str], name: str) -> None:
    """A ConfigError, with the nearest of the known words, unless `name` is one of them."""
    words = list(known)
    if name not in words:
        raise ConfigError(f"{kind} must be one of {', '.join(words)}, got {name!r}{_nearest(name, words)}")


def parameters(cls: type) -> list[Parameter]:
    """The settings of a dataclass, each with what its docstring, or a parent's, has behind `name: `."""
    hints = get_type_hints(cls)
    docs: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        for _, names, text in _LINE.findall(inspect.cleandoc(owner.__doc__ or "")):
            docs.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return [
        Parameter(f.name, _text(hints[f.name]), None if f.default is MISSING else f.default, docs.get(f.name, ""))
        for f in _settings(cls)
    ]


def _settings(cls: type) -> list[Field[Any]]:
    return [f for f in fields(cls) if f.init]


def _optional(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _fit(field: str, value: object, hint: Any) -> object:
    """`value` as the type that the field wants; TOML and JSON write 15 for 15.0 and a list for a tuple."""
    for wanted in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin = get_origin(wanted) or wanted
        if wanted is float and type(value) in (int, float) and isfinite(value):  # type: ignore[arg-type]
            return float(value)  # type: ignore[arg-type]
        if wanted in (int, str, bool, type(None)) and type(value) is wanted:
            return value
        if origin is Literal and value in get_args(wanted):
            return value
        if origin is tuple and isinstance(value, list | tuple):
            return tuple(_fit(field, item, get_args(wanted)[0]) for item in value)
    raise ConfigError(f"{field} must be {_text(hint, _WORDS)}, got {value!r}")


def _text(hint: Any, words: Mapping[Any, str] | None = None) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " | ".join(_text(part, words) for part in get_args(hint)).replace(" | ", " or " if words else " | ")
    if origin is Literal:
        return " | ".join(repr(choice) for choice in get_args(hint))
    if origin is tuple:
        return f"a list of {_text(get_args(hint)[0], words)}"
    if hint is type(None):
        return words[hint] if words else "unset"
    return (words or {}).get(hint, getattr(hint, "__name__", str(hint)))
