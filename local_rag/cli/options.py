"""What the commands share: how they start, what they may reach, how they open a library, and common options."""

import functools
import os
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from local_rag import asking
from local_rag.asking import AskOptions, Filters, first_day
from local_rag.display import display_path, one_line
from local_rag.errors import LocalRagError, QuestionError, nearest
from local_rag.files import DEFAULT_FOLDER, SETTINGS_FILE
from local_rag.offline import Cluster, Network, close

if TYPE_CHECKING:
    from local_rag.library import Library, Parts


F = TypeVar("F", bound=Callable[..., Any])
# Types of options: what a path names, which is there already if it is present.
PATH = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
PRESENT = click.Path(exists=True, path_type=Path)
PRESENT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PRESENT_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the command line was started: whether to block the network of the process, and with which library parts."""

    seal: bool = False
    parts: Any = None


def has_own_process(ctx: click.Context) -> bool:
    """Return whether this process runs only the command, which may then block its network."""
    return isinstance(ctx.obj, Invocation) and ctx.obj.seal


class Command(click.Command):
    """A command that reaches only this machine."""

    network: ClassVar[Network] = Network.NONE
    allow_extra_args = True  # refused by `parse_args`

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; refuse a name or a text with spaces that was given without quotation marks."""
        super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            _refuse_words(ctx)
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        """Block the network before the command runs."""
        if has_own_process(ctx):
            if self.network is Network.NONE:
                open_answer_relay(ctx)
            close(self.allowed(ctx))
        return super().invoke(ctx)

    def allowed(self, ctx: click.Context) -> Network | Cluster:
        """Return what this command may reach, including the cluster that the settings of its library name."""
        folder = ctx.params.get("library")
        if self.network is Network.NONE and isinstance(folder, Path):
            return allowed_network(folder)
        return self.network


_NAME_WORDS = 20  # at most, so that thousands of arguments are looked at quickly


def _refuse_words(ctx: click.Context) -> None:
    """Refuse more arguments than the command takes, and words that are the name of a file only together."""
    arguments = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    given = [ctx.params[one.name] for one in arguments if one.name and ctx.params[one.name] is not None]
    words = [str(word) for value in given for word in (value if isinstance(value, tuple) else (value,))] + ctx.args
    exists = os.path.exists  # unlike Path.exists it takes names of any length
    if any(isinstance(one.type, click.Path) for one in arguments) and not all(map(exists, words)):
        runs = (words[at : at + size] for at in range(len(words)) for size in range(2, _NAME_WORDS + 1))
        for run in runs:
            if exists(name := " ".join(run)) and not all(map(exists, run)):
                ctx.fail(f"Put the name in quotation marks: {shlex.quote(name)}")
    if ctx.args and arguments and arguments[-1].type is click.STRING and given:
        text = shlex.quote(" ".join([given[-1], *ctx.args]))
        ctx.fail(f"Put the {arguments[-1].name} in quotation marks: {text}")
    if ctx.args:
        ctx.fail(f"Got more arguments than expected: {' '.join(ctx.args)}")


def open_answer_relay(ctx: click.Context) -> None:
    """Let the process reach the engine that answers, if the options, the environment or the settings name one."""
    folder, named = ctx.params.get("library"), ctx.params.get("answer_model")
    folder = folder if isinstance(folder, Path) else DEFAULT_FOLDER
    if named or os.environ.get("LOCAL_RAG_ANSWER_MODEL") or (folder / SETTINGS_FILE).exists():
        # Imported here because most commands do not need to read settings at this point.
        from local_rag.models.engine_address import open_engine_relay
        from local_rag.settings import resolve_settings

        engine = open_engine_relay(resolve_settings(folder, answer_model=named))
        if engine and "answer_model" in ctx.params:
            click.echo(f"Questions and passages are sent to {engine}.", err=True)


def allowed_network(folder: Path) -> Network | Cluster:
    """Return what a command on a library may reach: nothing, or the hosts of the cluster that its settings name."""
    named = any(os.environ.get(f"LOCAL_RAG_{name}") for name in ("CLUSTER_ADDRESS", "SEARCH_ENGINE_ADDRESS"))
    if not named and not (folder / SETTINGS_FILE).exists():
        return Network.NONE
    # Imported here because most commands do not need to read settings at this point.
    from local_rag.cluster.on_request import network_of
    from local_rag.settings import resolve_settings

    return network_of(resolve_settings(folder))


class ClusterCommand(Command):
    """A command that connects to the machines of a cluster, including those named by its options."""

    def allowed(self, ctx: click.Context) -> Network | Cluster:
        """Return what this command may reach."""
        from local_rag.cluster.hosts import head_of, private_addresses

        allowed = super().allowed(ctx)
        hosts = set(allowed.hosts) if isinstance(allowed, Cluster) else {"127.0.0.1"}
        for named in (ctx.params.get("host"), ctx.params.get("address")):
            if named:
                host = head_of(named)[0]
                hosts |= {host, *private_addresses(host)}
        return Cluster(frozenset(hosts))


class FetchingCommand(Command):
    """A command that downloads."""

    network: ClassVar[Network] = Network.FETCH


class Group(click.Group):
    """A command with subcommands."""

    command_class = Command


class DefaultGroup(Group):
    """A command with subcommands that runs the one called `default` if the first argument names none."""

    def __init__(self, *args: Any, default: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default subcommand if none is named; an argument with the name of a subcommand needs `./`."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else [self.default, *args])


def current_parts() -> "Parts":
    """Return the parts for libraries with which the command line was started, or the default ones."""
    from local_rag.library import Parts

    return click.get_current_context().obj.parts or Parts()


def open_library(folder: Path, **settings: Any) -> "Library":
    """Open a library with the settings that flags give; the import is slow and not needed if a server answers.

    What marks have done to its gate since the last command is said on stderr.
    """
    from local_rag.library import Library

    opened = Library(folder, parts=current_parts(), **settings)
    if notice := opened.feedback.gate_notice():
        click.echo(one_line(notice), err=True)
    return opened


def say_what_is_missing(opened: "Library") -> None:
    """Say on stderr how much can be searched so far, if the first `index` has not ended."""
    if notice := opened.documents.missing_notice():
        click.echo(notice, err=True)


def say_if_indexed(opened: "Library", output: Path) -> None:
    """Say on stderr that the next `index` will read a file that is to be written as a document."""
    place = output.resolve()
    if root := next((one.path for one in opened.upkeep.roots() if place.is_relative_to(one.path)), None):
        shown, folder = (one_line(display_path(one)) for one in (output, root))
        said = f"{shown} lies in {folder}, so the next `index` reads it as a document; better name a file elsewhere."
        click.echo(said, err=True)


@contextmanager
def stopping(notice: str = "") -> Iterator[Event]:
    """Let the first Ctrl-C end what is being done, with a notice, and a second one the command."""
    stopped = Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stopped.set()
        if notice:
            click.echo(notice, err=True)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def require_question(question: str) -> None:
    """Refuse a question that cannot be asked; an empty one is wrong usage."""
    try:
        asking.require_question(question)
    except QuestionError as error:
        raise error if question.strip() else click.UsageError(str(error)) from None


class Day(click.ParamType):  # type: ignore[type-arg]
    """A day such as 2024-05-01, or the first day of a month or year."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Parse a day, a month or a year."""
        if isinstance(value, date):
            return value
        try:
            return first_day(value)
        except ValueError:
            self.fail(f"{value!r} is not a date such as 2024-05-01, 2024-05 or 2024.", param, ctx)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options in this order."""
    return lambda function: functools.reduce(lambda done, option: option(done), reversed(options), function)


def model_option(role: str, purpose: str) -> Callable[[F], F]:
    """Add an option that names a model by registry name or path."""
    return click.option(f"--{role}-model", metavar="NAME|PATH", help=f"The model to {purpose}.")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
profile_option = click.option(
    "--profile", metavar="NAME", help="Models to use: a profile of `local-rag models list`.  [default: starter]"
)
library_options = together(
    click.option("--library", type=FOLDER, default=DEFAULT_FOLDER, help="Folder of the library."), profile_option
)
within_option = click.option(
    "--in",
    "within",
    multiple=True,
    metavar="GLOB|PATH",
    help="Only documents that match a pattern such as 'policies/**' below an indexed folder, or that are below "
    "an absolute path; repeat for several alternatives.",
)
_as_of_option = click.option(
    "--as-of",
    type=Day(),
    metavar="DATE",
    help="Of several versions of a document only the one that was valid on this day.",
)
_filters = together(
    within_option,
    click.option(
        "--type",
        "types",
        multiple=True,
        metavar="SUFFIX",
        help="Only files of this type, such as pdf; repeat for several.",
    ),
    click.option(
        "--since",
        type=Day(),
        metavar="DATE",
        help="Only documents of this day or later, by their own date or else that of the file.",
    ),
    click.option("--before", type=Day(), metavar="DATE", help="Only documents from before this day."),
    click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="TAG",
        help="Only documents with this tag, or this property as NAME=VALUE; repeat to require several.",
    ),
)


def filter_options(function: F) -> F:
    """Add the options that limit the documents to search; the command receives them as `filters`."""

    @functools.wraps(function)
    def filtered(*, within: tuple[str, ...], as_of: date | None = None, **others: Any) -> Any:
        limits = {name: others.pop(name) for name in ("types", "since", "before", "tags")}
        return function(filters=Filters(_also_from_here(within), **limits, as_of=as_of), **others)

    return _filters(filtered)  # type: ignore[return-value]


def version_options(function: F) -> F:
    """Add the options that limit the documents, and the one that chooses of several versions, all as `filters`."""
    return filter_options(_as_of_option(function))


def _also_from_here(within: tuple[str, ...]) -> tuple[str, ...]:
    """Return places and the absolute paths of those in the working directory, from which paths are shown."""
    here = [str(Path.cwd() / one) for one in within if one and not one.startswith("/") and (Path.cwd() / one).exists()]
    return tuple(dict.fromkeys((*within, *here)))


_search_options = together(
    model_option("embed", "embed with"),
    model_option("rerank", "rerank with"),
    click.option(
        "--rerank-candidates",
        type=click.IntRange(min=1),
        help="How many of the fused passages to rerank.  [default: those that are kept, or with some models as many "
        "as fit 3 seconds]",
    ),
    click.option("--no-rerank", is_flag=True, help="Do not rerank; keep the fused order."),
)
# The options of an answer besides those of its search, by their field in AskOptions.
_ANSWER_OPTIONS = {
    "passages": click.option(
        "--passages",
        type=click.IntRange(min=1),
        help="How many passages the model is shown whole; more take longer.  [default: the best parts of several]",
    ),
    "strict": click.option(
        "--strict/--no-strict",
        default=True,
        help="Quote instead of answering with a number, unit or name that the quoted text lacks.",
    ),
    "anyway": click.option(
        "--anyway",
        is_flag=True,
        help="Let the model answer even if the answer is doubtful; read the sources before you rely on it.",
    ),
    "code_only": click.option(
        "--code-only",
        is_flag=True,
        help="Answer only what code computes from rows, documents and changes; leave any other question.",
    ),
    "seconds": click.option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True),
        help="Read only what the model can read and answer in this time, or else quote.  [default: no limit]",
    ),
    "kind": click.option(
        "--as",
        "kind",
        type=click.Choice(["passages", "rows", "documents", "changes", "brief"]),
        help="Understand the question as one about passages, rows, all documents, changes, or a summary.",
    ),
}


def search_options(function: F) -> F:
    """Add the options of a search; the command receives them as `options`, an AskOptions record."""

    @functools.wraps(function)
    def command(*, no_rerank: bool, filters: Filters, **others: Any) -> Any:
        chosen = {name: others.pop(name) for name in _ANSWER_OPTIONS if name in others}
        options = AskOptions(rerank=not no_rerank, filters=filters, **chosen)
        return function(options=options, **others)

    return _search_options(version_options(command))  # type: ignore[return-value]


def ask_options(function: F) -> F:
    """Add the options of a search and those of its answer."""
    return search_options(together(*_ANSWER_OPTIONS.values())(function))


_MOST = 12  # folders that are named


def no_matching_document(library: Path, filters: Filters) -> str:
    """Return the sentence for a question whose filters no matching document passes."""
    from local_rag.library import Library  # a search by a server loads nothing of it

    try:
        with Library(library) as opened:
            if filters.within and not opened.documents.listed(filters=Filters(within=filters.within), most=1):
                contents = opened.documents.contents()
                hint = _mistyped(filters.within, contents.documents)
                hint = hint or f"the folders are: {', '.join(_folders(contents.documents, contents.roots))}."
                return one_line(f"No document lies in {' or '.join(filters.within)}; {hint}")
    except LocalRagError:
        pass  # the library is only served from here
    return "No matching document passes the filters; remove one of --in, --type, --since, --before and --tag."


def _mistyped(within: Iterable[str], paths: Iterable[str]) -> str:
    """Return a clause that asks whether a folder or file with nearly the name of a place is meant."""
    names = {name for path in paths for name in path.split("/") if name}
    asked = (name for place in within for name in place.split("/") if name not in names)
    return next(filter(None, (nearest(name, names) for name in asked)), "")


def _folders(paths: Iterable[str], roots: Sequence[Path]) -> list[str]:
    """Return the indexed folders and those directly below them that hold documents, those with the most first."""
    counts = Counter[str]()
    for path in paths:
        root = next((str(root) for root in roots if path.startswith(f"{root}/")), str(Path(path).parent))
        below = path.removeprefix(f"{root}/")
        counts[f"{root}/{below.split('/')[0]}" if "/" in below else root] += 1
    named = [display_path(folder) for folder, _ in counts.most_common(_MOST)]
    return [*named, *([f"and {len(counts) - _MOST} more"] if len(counts) > _MOST else [])]
