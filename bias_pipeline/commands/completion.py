"""``completion``: the completions for a shell, and the script that makes the shell ask."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Sequence

from bias_pipeline.commands.arguments import PROGRAM, Parser
from bias_pipeline.commands.registry import WORDS, resolve_command
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.io.terminal import print_out

_ABOUT = """\
Print a script that makes bash or zsh complete commands, options, keys and their values. Put it
where your shell reads it: eval "$(python -m bias_pipeline completion bash)".
"""
_ASK = "--line"

# Bash splits words at "=" too, so completions begin after the last one.
_SCRIPT = """\
_bias_pipeline() {
  local line="${COMP_LINE:0:COMP_POINT}" asked
  case "$line" in
    *python*" -m bias_pipeline "*) asked="${line%% -m bias_pipeline *} -m bias_pipeline" ;;
    bias-pipeline" "*) asked=bias-pipeline ;;
    *) COMPREPLY=(); return ;;
  esac
  local rest="${line#"$asked "}"
  mapfile -t COMPREPLY < <($asked completion --line="$rest" 2>/dev/null)
}
complete -o bashdefault -o default -o nospace -F _bias_pipeline python python3 bias-pipeline
"""
_SCRIPTS = {"bash": _SCRIPT, "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_SCRIPT}"}


def command(words: list[str]) -> int:
    """Print a shell's script, or the completions of a line; returns the exit code."""
    options = parser().parse_args(words)
    if options.line is not None:
        print_out(*completions(options.line))
    else:
        print_out(*_SCRIPTS[options.shell or "bash"].splitlines())
    return 0


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(f"{PROGRAM} completion", description=_ABOUT)
    parser.add_argument("shell", nargs="?", choices=list(_SCRIPTS), help="(bash)")
    parser.add_argument(_ASK, help=SUPPRESS)
    return parser


def completions(line: str) -> list[str]:
    """The completions of a line's last word, after its last ``=``.

    Args:
        line: the text after the program's name, up to the cursor.

    Example:
        >>> completions("re"), completions("report w")
        (['report '], ['wandb '])
        >>> completions("metric=gender_e")
        ['gender_error']
    """
    *before, last = line.split(" ")
    before = [word for word in before if word]
    try:
        return _of_word(before, last)
    except BiasPipelineError:
        return []  # the words before are wrong


def _of_word(before: Sequence[str], last: str) -> list[str]:
    word, rest = resolve_command(before)
    if word is None:
        return _next_words(before, last)
    if last.startswith("-"):
        return [f"{flag} " for flag in word.parser().flags if flag.startswith(last)]
    next_words = [] if rest else _next_words(before, last)
    keys = _keys(rest, last) if word.keys and (before or "=" in last or last) else []
    return [*next_words, *keys]


def _next_words(before: Sequence[str], last: str) -> list[str]:
    """The words that may follow the given ones."""
    head = "".join(f"{word} " for word in before)
    names = [word.name[len(head) :] for word in WORDS if word.name.startswith(head)]
    following = dict.fromkeys(name.partition(" ")[0] for name in names)
    return [f"{name} " for name in following if name.startswith(last)]


def _keys(overrides: Sequence[str], last: str) -> list[str]:
    """Keys and values of the configuration, as Hydra completes them."""
    from hydra._internal.core_plugins.bash_completion import BashCompletion

    from bias_pipeline.config.hydra_composer import loader_of

    words = [word for word in overrides if "=" in word]
    proposals = BashCompletion(loader_of())._query("config", " ".join([*words, last]))
    offered = [proposal.rpartition("=")[2] if "=" in last else proposal for proposal in proposals]
    return [
        proposal for proposal in offered if not proposal.startswith("_")
    ]  # files that others share
