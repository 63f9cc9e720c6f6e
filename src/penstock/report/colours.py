"""One look for each policy, the same in every picture: a colour the colour-blind tell apart too, and a kind of line.

The colours are Okabe and Ito's (without their yellow, which is lost on white).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from zlib import crc32

BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
BLACK, GREY = "#000000", "#DDDDDD"


@dataclass(frozen=True, slots=True)
class Style:
    """How a policy is drawn: colour as #RRGGBB, line as matplotlib calls it."""

    colour: str
    line: Literal["-", "--", "-.", ":"] = "-"


STYLES: dict[str, Style] = {
    "daedalus": Style(BLUE),
    "dhalion": Style(BLACK, "-."),
    "dhalion-adapted": Style(ORANGE, "-."),
    "ds2": Style(PURPLE),
    "ds2-modern": Style(PURPLE, "--"),
    "ds2-modern-adapted": Style(PURPLE, "-."),
    "flink-operator": Style(BLACK),
    "flink-reactive": Style(BLACK, ":"),
    "gesscale": Style(GREEN, "--"),
    "hpa": Style(VERMILION),
    "hpa-60": Style(SKY),
    "hpa-80": Style(VERMILION),
    "hpa-80-of-limit": Style(VERMILION, ":"),
    "hpa-85": Style(ORANGE),
    "keda-lag": Style(SKY, "--"),
    "mdl-nl-unaware": Style(GREEN, "-."),
    "phoebe": Style(GREEN),
    "spark-dra": Style(SKY, "-."),
    "spark-dstreams": Style(SKY, ":"),
    "static": Style(BLACK, "--"),
    "thr-nl-aware": Style(VERMILION, "--"),
    "thr-nl-unaware": Style(VERMILION, "-."),
    "throughput-memory": Style(PURPLE, ":"),
    "varga-v1": Style(ORANGE, "--"),
    "varga-v2": Style(ORANGE, ":"),
}
_OTHERS = (
    *(Style(colour, ":") for colour in (BLUE, GREEN)),
    Style(BLUE, "--"),
    Style(BLUE, "-."),
)


def style(policy: str) -> Style:
    """The look of a policy, by its name or a run's label; one that is not listed gets one of a few by its name.

    >>> style("daedalus").colour, style("ds2_modern") == style("ds2-modern"), style("mine") == style("mine")
    ('#0072B2', True, True)
    """
    name = policy.replace("_", "-").lower()
    return STYLES.get(name) or _OTHERS[crc32(name.encode()) % len(_OTHERS)]
