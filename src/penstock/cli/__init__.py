"""The command line. Commands are imported when they are called, so that help costs no Spark."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, UnknownCommandError, UnusedCliTokensError

from penstock import __version__
from penstock.errors import ConfigError, Full, PenstockError, Refused, SourceError

ABOUT = """Just the workers a streaming job needs, and the reasons why.

Penstock watches a streaming job, decides how many workers it needs, asks for them, and writes down what it saw,
decided and did. That journal explains every decision, and replays it.

    penstock demo                                    # a real Spark job, its load and an autoscaler
    penstock explain journal.jsonl                   # why it had the workers it had
    penstock replay journal.jsonl --policy static    # what another policy would have asked for

Every command that prints results takes --json, and has more to say with --help.
"""

RUN, LOOK, OPTIONS = (Group(name, sort_key=place) for place, name in enumerate(("Run", "Look", "Options")))

COMMANDS = {
    "demo": (RUN, "penstock.cli.live:demo", "A real Spark job on this machine, its load and an autoscaler, live."),
    "run": (RUN, "penstock.cli.live:run", "Run an experiment: a cluster, a job, its load and an autoscaler."),
    "calibrate": (RUN, "penstock.cli.live:calibrate", "Measure how much one worker can do on this machine."),
    "profile": (RUN, "penstock.cli.profile:make_profile", "Profile a job at several scale-outs, for Phoebe and TWRES."),
    "simulate": (
        RUN,
        "penstock.cli.simulate:simulate",
        "Policies on a simulated job: hours in seconds, over many seeds.",
    ),
    "bench": (RUN, "penstock.cli.bench:bench", "Run a suite of experiments one after the other, and report on them."),
    "validate": (RUN, "penstock.cli.validate:validate", "Is the simulator like the real thing? Recorded runs say."),
    "explain": (LOOK, "penstock.cli.inspect:explain", "Tell why a job had the workers it had, decision by decision."),
    "replay": (LOOK, "penstock.cli.inspect:replay", "Decide again on what a journal recorded, as it was or otherwise."),
    "policies": (LOOK, "penstock.cli.inspect:policies", "The autoscalers, and the parameters of each."),
    "jobs": (LOOK, "penstock.cli.inspect:jobs", "The streaming jobs that can be run and scaled."),
    "workloads": (LOOK, "penstock.cli.inspect:workloads", "The loads that a job can be put under."),
}


def main() -> None:
    """The entry point of `penstock`."""
    sys.exit(call(sys.argv[1:]))


def call(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code: 2 for what the user has to correct, 1 for what went wrong otherwise."""
    app = _app(next((word for word in arguments if not word.startswith("-")), ""))
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            code = app(list(arguments))
            sys.stdout.flush()
        except CycloptsError as error:
            return _complain(_parsing(error), 2)
        except (ConfigError, Refused, SourceError) as error:
            return _complain(error, 1 if isinstance(error, Full) else 2)  # a full disk is nobody's typing error
        except PenstockError as error:
            return _complain(error, 1)
        except KeyboardInterrupt:
            return 130
        except BrokenPipeError:  # as in `penstock explain … | head`: whoever read has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
    return code if isinstance(code, int) else 0


def _app(chosen: str) -> App:
    app = App(
        name="penstock",
        help=ABOUT,
        help_format="markdown",
        version=__version__,
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for place, (name, (group, path, summary)) in enumerate(COMMANDS.items()):
        # The summary stands in for what is not imported; the command that was chosen has its own, longer help.
        app.command(path, name=name, group=group, help=None if name == chosen else summary, sort_key=place)
    for flag in ("--help", "--version"):
        app[flag].group = OPTIONS
    return app


def _parsing(error: CycloptsError) -> str:
    """What is wrong with a command line, in one sentence, and where help is."""
    hint = f"See `{' '.join(('penstock', *(error.command_chain or ())))} --help`."
    rest = error.unused_tokens or [""]
    if isinstance(error, UnknownCommandError):  # cyclopts would import every command to say this
        near = difflib.get_close_matches(rest[0], COMMANDS, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        return f"command must be one of {', '.join(COMMANDS)}, got {rest[0]!r}{meant} {hint}"
    if isinstance(error, UnusedCliTokensError):
        return f"Nothing is done with the argument {rest[0]!r}. {hint}"
    return f"{error} {hint}"


def _complain(message: object, code: int) -> int:
    print(f"penstock: {' '.join(str(message).split())}", file=sys.stderr)
    return code


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"penstock: {message}", file=sys.stderr)
