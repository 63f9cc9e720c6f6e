"""Everything that can go wrong, as one tree.

PenstockError
├── ConfigError        what the user asked for is not possible: exit 2, one sentence, no traceback
├── Unavailable        cannot be known or done right now: hold, and try again at the next tick
├── Refused            the target rejected the request, and would reject it again
└── SourceError        the source log
    ├── Damaged        a segment is not what was written
    ├── Full           no room left; nothing of the failed write became visible
    ├── Locked         another writer has the log
    └── Unsupported    written by a Penstock that this one does not understand
"""


class PenstockError(Exception):
    """The root: catch this to catch all of Penstock's own errors."""


class ConfigError(PenstockError):
    """A setting breaks its rule; the message names the field, the rule and the value."""


class Unavailable(PenstockError):
    """A passing outage. The loop holds, says so, and asks again."""


class Refused(PenstockError):
    """The target says no; asking again changes nothing."""


class SourceError(PenstockError):
    """Something about the source log."""


class Damaged(SourceError):
    """Stored records fail their check; nothing of them is delivered."""


class Full(SourceError):
    """The disk has no room; the write left nothing behind and may be tried again."""


class Locked(SourceError):
    """One log, one writer: somebody else writes already."""


class Unsupported(SourceError):
    """An unknown format version."""


def check(holds: bool, field: str, rule: str, value: object) -> None:
    """Raise a ConfigError that names the field, the rule and the value.

    >>> check(0.8 <= 1, "target_cpu", "be in (0, 1]", 0.8)
    >>> check(85 <= 1, "target_cpu", "be in (0, 1]", 85)
    Traceback (most recent call last):
    penstock.errors.ConfigError: target_cpu must be in (0, 1], got 85
    """
    if not holds:
        raise ConfigError(f"{field} must {rule}, got {value!r}")
