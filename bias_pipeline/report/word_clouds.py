"""Word clouds of concepts, one a group: a concept's size is the group's share of what it retrieves.

After Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, Figures 4 and 5,
which define neither size nor number of concepts; here at most :data:`MOST`. The library wordcloud
places the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bias_pipeline.io.terminal import printable
from bias_pipeline.report.figures import Colours, Plot, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 60  # concepts of a cloud
_SEED = 0  # of the places that are tried
_WIDTH, _HEIGHT, _INCH = 640, 300, 100  # pixels of the layout, and how many an inch has
_SMALLEST, _LARGEST = 9, 60  # pixels of a letter
_MARGIN = 2 * 3 / 72  # inches that a figure leaves around its axes


class CloudWord(NamedTuple):
    """A word of a cloud.

    Attributes:
        text: the word.
        size: of its letters, in pixels of a cloud 640 wide.
        left: where it begins.
        base: how far down its line is.
    """

    text: str
    size: float
    left: float
    base: float


def cloud(shares: Mapping[str, float], title: str) -> Plot:
    """A cloud of concepts.

    Args:
        shares: concept to the group's share of what it retrieves, in [0, 1]; those of 0 are not
            drawn. At least one is above 0.
        title: also read aloud by screen readers.
    """

    def draw(axes: Axes, colours: Colours) -> None:
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(_HEIGHT, 0)
        axes.set_axis_off()
        for word in laid_out(shares):
            points = 72 * word.size / _INCH
            drawn = axes.text(
                word.left, word.base, printable(word.text), fontsize=points, color=colours.mark
            )
            drawn.set_in_layout(False)  # the layout must not move words

    size = (_WIDTH / _INCH + _MARGIN, _HEIGHT / _INCH + _MARGIN)
    return Plot(title, size, draw, Points((), (), ()))


def laid_out(shares: Mapping[str, float]) -> list[CloudWord]:
    """The place of each word, the same for the same shares.

    Args:
        shares: see :func:`cloud`.
    """
    from PIL import ImageFont
    from wordcloud import WordCloud

    font = _font()
    drawn = {name: share for name, share in sorted(shares.items()) if share > 0}
    layout = WordCloud(
        font_path=font,
        width=_WIDTH,
        height=_HEIGHT,
        max_words=MOST,
        min_font_size=_SMALLEST,
        max_font_size=_LARGEST,
        prefer_horizontal=1.0,
        random_state=_SEED,
    ).generate_from_frequencies(drawn)
    words = []
    for (text, _), size, (top, left), _, _ in layout.layout_:
        before, above, *_ = ImageFont.truetype(font, size).getbbox(text, anchor="ls")
        words.append(CloudWord(text, size, left - before, top - above))
    return words


def _font() -> str:
    """The file of the font in which figures are drawn; matplotlib brings it."""
    import matplotlib as mpl

    return str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")
