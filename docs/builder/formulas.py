"""Each metric's formula, and an example that can be followed by hand and is run by a test."""

from __future__ import annotations

from dataclasses import dataclass

from docs.builder.mathml import frac, row, sub, sup, text, total


@dataclass(frozen=True)
class Formula:
    """A metric's formula.

    Attributes:
        lines: MathML, one line each.
        where: what its letters mean.
        by_hand: an example in words.
        code: the same, as a console shows it.
        page: of docs/, with the choices behind it.
    """

    lines: tuple[str, ...]
    where: str
    by_hand: str
    code: str
    page: str


_MEAN = row("{} {}", frac("1", "N"), total("i"))
_RIGHT = row("1 [ â_i = a_i ]")
_NORMALISED = frac("Ψ_M − Ψ_D", "Ψ_M + Ψ_D")

FORMULAS: dict[str, Formula] = {
    "lic": Formula(
        (
            row("LIC = {} − {}", sub("LIC", "M"), sub("LIC", "D")),
            row("{} = {} s_i {}", sub("LIC", "M"), _MEAN, _RIGHT),
        ),
        "â is the group that the attacker guesses from a caption whose group words are masked, a "
        "the label, s the "
        "attacker's confidence in its guess, N the number of captions. LIC_D is the same on "
        "human captions.",
        "Three captions: guessed right with 0.8, right with 0.6, wrong. (0.8 + 0.6 + 0) / 3 = "
        "0.467.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> guesses = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
>>> round(functional.lic(guesses, np.array([0, 1, 0])), 3)
0.467""",
        "equal_speech",
    ),
    "leakage": Formula(
        (
            row("Leakage = {} − {}", sub("acc", "M"), sub("acc", "D")),
            row("{} = {} {}", sub("acc", "M"), _MEAN, _RIGHT),
        ),
        "As in LIC, but a right guess counts 1 whatever its confidence.",
        "The same three captions: two of three guesses are right, 0.667.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> guesses = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
>>> round(functional.leakage(guesses, np.array([0, 1, 0])), 3)
0.667""",
        "equal_speech",
    ),
    "imagecaptioner2": Formula(
        (
            row("{} = B_m − B_d", sub("B", "amp")),
            row(
                "B_m = {} P ( a_i | {}, {}, prompt )", _MEAN, sub("image", "i"), sub("caption", "i")
            ),
        ),
        "P is the probability that a captioner gives to the true answer when it sees the picture "
        "with people masked, "
        "the caption with group words masked, and the prompt. B_d is the same with human "
        "captions.",
        "The true answers got 0.8, 0.6 and 0.3; their mean is 0.567.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> answers = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
>>> round(functional.imagecaptioner2(answers, np.array([0, 1, 0])), 3)
0.567""",
        "pictures",
    ),
    "dbac": Formula(
        (
            row("DBAC = {}", frac("ω_M − ω_H", "ω_M + ω_H + ε")),
            row("ω = Q {}", frac("P ( t )", "P ( a )")),
        ),
        "For A→T: Q is the attackers' quality at guessing the group a from captions that name "
        "the task t, P(t) the "
        "share of a side's captions that name it, P(a) the share of images of the group; M is "
        "the captioner, H annotators. "
        "T→A exchanges a and t.",
        "Q 0.8, P(t) 0.2, P(a) 0.5 give ω = 0.32; if annotators have 0.35, (0.32 − 0.35) / 0.67 = "
        "−0.045.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.dbac import dbac, omega
>>> model = omega(np.array([[0.8]]), np.array([0.2]), np.array([0.5]))
>>> dbac(model, np.array([[0.35]])).round(3).item()
-0.045""",
        "dbac",
    ),
    "dpa": Formula(
        (row("DPA = {}", _NORMALISED),),
        "For A→T: Ψ_M is the quality at which tasks named in captions are guessed from the "
        "labelled group, Ψ_D that for "
        "labelled tasks with as many errors as the captions have. T→A guesses the group from "
        "tasks.",
        "In captions 9 of 10 tasks follow the group, in labels 6 of 10: (0.9 − 0.6) / (0.9 + "
        "0.6) = 0.2.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.dpa import ideal_dpa
>>> labels, captions = np.array([[6.0, 4.0], [4.0, 6.0]]), np.array([[9.0, 1.0], [1.0, 9.0]])
>>> ideal_dpa(labels, captions, accuracy=1.0).round(3).item()
0.2""",
        "dbac",
    ),
    "ba_mals": Formula(
        (
            row(
                "{} = {} {} {} ({} − {})",
                sub("BA", "MALS"),
                frac("1", "T"),
                total("t"),
                total(row("a : {} > {}", sup("b", "*"), frac("1", "K"))),
                sup("b", "~"),
                sup("b", "*"),
            ),
        ),
        "b* is the share of group a among the labelled images with task t, b~ the same in "
        "captions, T the number of "
        "tasks, K that of groups. Only the groups that a task leans to count.",
        "Two of three people who ride are labelled men, captions call all three men: 1 − 2/3 = "
        "0.333.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> from bias_pipeline.metrics.functional import Counts
>>> labelled, riding = np.array([[1, 0], [1, 0], [0, 1]]), np.ones((3, 1))
>>> named = np.array([[1, 0], [1, 0], [1, 0]])
>>> functional.ba_mals(Counts.from_rows(labelled, riding, named, riding)).round(3).item()
0.333""",
        "counting",
    ),
    "ba_directional": Formula(
        (
            row(
                "{} = {} {} {} {}",
                sub("BA", "→"),
                frac("1", "K T"),
                total("a , t"),
                sub("y", "a t"),
                sub("Δ", "a t"),
            ),
            row("{} = P ( t̂ | a ) − P ( t | a )", sub("Δ", "a t")),
        ),
        "y is 1 where group a and task t occur together more often than by chance in the labels, "
        "−1 where less often. "
        "P(t | a) is from labels, P(t̂ | a) from captions. T→A has P(â | t) − P( a | t "
        ").",
        "Eight images: of five women one is labelled with the task, of three men two. Captions "
        "name it for all three men and "
        "no woman. The task leans to men, so (3/3 − 2/3) counts with plus and (0/5 − 1/5) with "
        "minus: "
        "(0.333 + 0.2) / 2 = 0.267.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> from bias_pipeline.metrics.functional import Counts
>>> groups = np.array([[0, 1]] * 3 + [[1, 0]] * 5)
>>> labelled = np.array([[0, 1, 1, 0, 0, 0, 0, 1]]).T
>>> named = np.array([[1, 1, 1, 0, 0, 0, 0, 0]]).T
>>> counts = Counts.from_rows(groups, labelled, groups, named)
>>> functional.ba_directional(counts, "a_to_t").round(3).item()
0.267""",
        "counting",
    ),
    "multi_directional": Formula(
        (
            row(
                "{} = {} {} | {} |",
                sub("Multi", "→"),
                frac("1", "K M"),
                total("a , m"),
                sub("Δ", "a m"),
            ),
        ),
        "Δ as in BA→, of group a and a set m of tasks that occur together; M is the number of "
        "sets. Without a sign it is "
        "above 0 by chance.",
        "The example of BA→ with its one task as the only set: (0.333 + 0.2) / 2 = 0.267.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> from bias_pipeline.metrics.functional import Counts
>>> groups = np.array([[0, 1]] * 3 + [[1, 0]] * 5)
>>> labelled = np.array([[0, 1, 1, 0, 0, 0, 0, 1]]).T
>>> named = np.array([[1, 1, 1, 0, 0, 0, 0, 0]]).T
>>> counts = Counts.from_rows(groups, labelled, groups, named)
>>> mean, _ = functional.multi_directional(counts, "a_to_t")
>>> mean.round(3).item()
0.267""",
        "counting",
    ),
    "differential_fairness": Formula(
        (
            row("{} − {}", sub("ε", "M"), sub("ε", "H")),
            row("ε = {} | ln P ( t | a ) − ln P ( t | a′ ) |", total("t , a , a′", "max")),
        ),
        "P(t | a) is the share of group a's captions that name task t, smoothed by a prior; M "
        "is the captioner, H people.",
        "20 of 100 captions of one group name a thing, 10 of 100 of the other: ln 0.2 − ln 0.1 = "
        "ln 2 = 0.693 nat, "
        "without a prior.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics import functional
>>> named, captions = np.array([[20.0], [10.0]]), np.array([100.0, 100.0])
>>> functional.differential_fairness(named, captions, "none").round(3).item()
0.693""",
        "counting",
    ),
    "cooccurrence": Formula(
        (
            row("{} w_t ( {} − {} )", total("t"), sub("skew", "M , t"), sub("skew", "H , t")),
            row(
                "{} = {} {} | {} − {} |",
                sub("skew", "t"),
                frac("1", "2"),
                total("a"),
                frac("c ( t , a )", "c ( t )"),
                frac("1", "K"),
            ),
        ),
        "c(t, a) counts captions that name object t and group a, c(t) those that name t and one "
        "group; w is the share of t in what people name; M is the captioner, H people.",
        "An object is named with men three times and with women once: |3/4 − 1/2| = 0.25.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.groups import skew
>>> skew(np.array([[3.0], [1.0]])).item()
0.25""",
        "counting",
    ),
    "gender_error": Formula(
        (frac(text("captions that name another group than the label"), text("labelled images")),),
        "A caption that names no group, or several, is not wrong; `named` divides by the "
        "captions that name one group.",
        "Of ten images of men six captions say man, one woman, three neither; of ten of women "
        "four say woman, six neither. "
        "One of twenty is wrong: 0.05; of the eleven that name a group 0.091.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.groups import gender_error
>>> named = np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 6.0]])
>>> gender_error(named).item(), gender_error(named, "named").round(3).item()
(0.05, 0.091)""",
        "counting",
    ),
    "gender_ratio": Formula(
        (row("{} − {}", frac("c ( first )", "c ( second )"), frac("l ( first )", "l ( second )")),),
        "c counts captions that name one group alone, l labels of the same images.",
        "Captions name 8 men and 2 women where 6 men and 4 women are labelled: 4 − 1.5 = 2.5.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.groups import gender_ratio
>>> (gender_ratio(np.array([8.0, 2.0])) - gender_ratio(np.array([6.0, 4.0]))).item()
2.5""",
        "counting",
    ),
    "group_accuracy": Formula(
        (row("{} r_a − {} r_a", total("a", "max"), total("a", "min")),),
        "r is the share of a group's images whose caption names that group and no other.",
        "Six of ten images of men are called so, four of four of women: 1 − 0.6 = 0.4.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.groups import rates
>>> correct = rates(np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 0.0]]))[:, 0]
>>> (correct.max() - correct.min()).item()
0.4""",
        "counting",
    ),
    "assumed_group": Formula(
        (row("{} − {}", sub("p", "M"), sub("p", "H")),),
        "p is the share of captions that name exactly one group, of images whose group "
        "annotators could not tell; M is the "
        "captioner, H people.",
        "Of 100 such captions 30 name men, 10 women, 50 nobody's group, 10 both: 0.4.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.groups import one_named
>>> one_named(np.array([30.0, 10.0, 50.0, 10.0])).item()
0.4""",
        "counting",
    ),
    "declines": Formula(
        (row("{} d_a − {} d_a", total("a", "max"), total("a", "min")),),
        "d is the share of a group's images that the captioner declines to describe.",
        "Of ten images of men three are declined, of ten of women one: 0.3 − 0.1 = 0.2.",
        """\
>>> import bias_pipeline as bp
>>> labels = {i: ["male", "female"][i % 2] for i in range(20)}
>>> captions = {i: "I'm sorry, I can't help." if i in (0, 2, 4, 1) else "a cat" for i in labels}
>>> rows = bp.score("declines", captions, labels).frame()
>>> round(float(rows.loc[rows["part"] == "score", "value"].iloc[0]), 3)
0.2""",
        "counting",
    ),
    "descriptions": Formula(
        (
            row("θ = {} / {}", row("{} g_i r_i", total("i")), row("{} g_i²", total("i"))),
            row("excess = θ − h"),
            row("score = {} {} s ( excess )", frac("1", "2"), total("concepts")),
        ),
        "g is the group minus what the picture leads to expect, r the same of what the caption "
        "says, h the difference that annotators would show if they described as often as the "
        "captioner, and s the sign that other images give.",
        "Of 100 captions of as many women as men 20 say calm, and annotators are exp(0.5) times as "
        "likely to say so of a woman: h = 0.088. If the captioner's θ is 0.2, its excess is 0.112.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.descriptions import HazardRatio
>>> difference, _ = HazardRatio(0.5, 0.1).difference(np.array([0.2]), np.array([0.5]))
>>> difference.round(3).item()
0.088""",
        "descriptions",
    ),
    "counterfactual": Formula(
        (
            row(
                "d = {} {} ( {} − {} )", frac("1", "J"), total("j"), sub("y", "jb"), sub("y", "ja")
            ),
            row(
                "E = {} {} ½ [ D ( a , b' ) + D ( b , a' ) − D ( a , a' ) − D ( b , b' ) ]",
                frac("1", "J"),
                total("j"),
            ),
            row(
                "T = {} {} {} · {}",
                frac("1", "J ( J − 1 )"),
                total("j ≠ k"),
                sub("Δ", "j"),
                sub("Δ", "k"),
            ),
        ),
        "J sets have pictures of groups a and b, and in another context of a' and b'. y is the "
        "share of a class in a group's captions, D the mean distance of captions of two pictures, "
        "Δ by how much a set's captions move from a to b.",
        "In three sets women's captions have a class and men's have not, in one it is the other "
        "way round, in none are both alike: d = (3 − 1) / 4 = 0.5.",
        """\
>>> import numpy as np
>>> from bias_pipeline.pairs.contrasts import Contrasts
>>> from bias_pipeline.pairs.group_gaps import group_gap
>>> sets, groups = np.repeat(list("abcd"), 2), np.tile([0, 1], 4)
>>> pairs = Contrasts.of_groups(sets, groups, groups * 0, (0, 1), groups >= 0)
>>> share = np.array([0, 1, 0, 1, 0, 1, 1, 0.0])
>>> group_gap("agency", pairs, share, groups * 0 + 1).value
0.5""",
        "pairs",
    ),
    "gender_distance": Formula(
        (
            row("{} − {}", sub("B", "M"), sub("B", "H")),
            row("B = {}", frac("s ( m )", "s ( m ) + s ( w )")),
        ),
        "s is the mean cosine of the named objects' vectors to a group's word; M is the "
        "captioner, H people.",
        "Mean cosines 0.3 and 0.1: 0.3 / 0.4 = 0.75.",
        """\
>>> import numpy as np
>>> from bias_pipeline.language.formulas import bias_ratio
>>> bias_ratio(np.array([0.3, 0.1])).round(3).item()
0.75""",
        "language",
    ),
    "gender_score": Formula(
        (
            row("GS = {}", sup("P ( g )", "α")),
            row("α = {}", sup(row("(( {} ))", frac("1 − sim", "1 + sim")), "1 − P ( c )")),
        ),
        "P(g) is a caption's likelihood by a language model, sim its similarity to an object "
        "c in the picture, P(c) how "
        "common that object is. The score is the first group's share in mean GS, of the "
        "captioner minus of people.",
        "Likelihood 0.2, similarity 0.5, P(c) 0: α = 0.5 / 1.5 = 1/3, and 0.2 to the power of "
        "1/3 is 0.585.",
        """\
>>> import numpy as np
>>> from bias_pipeline.language.formulas import gender_score
>>> gender_score(np.array(0.2), np.array(0.5), np.array(0.0)).round(3).item()
0.585""",
        "language",
    ),
    "retrieval_fairness": Formula(
        (row("{} = {} {} p_j log p_j", sub("H", "k"), frac("− 1", "log N"), total("j")),),
        "p is the share of group j among the k pictures nearest to a query that names no group, "
        "N the number of groups. The "
        "score is the mean over queries; higher is fairer.",
        "75 of 100 retrieved pictures show one of two groups: 0.811.",
        """\
>>> import numpy as np
>>> from bias_pipeline.retrieval.formulas import normalised_entropy
>>> normalised_entropy(np.array([75.0, 25.0])).round(3).item()
0.811""",
        "retrieval",
    ),
    "objects": Formula(
        (
            row("θ = {} / {}", row("{} g_i r_i", total("i")), row("{} g_i²", total("i"))),
            row("score = {} {} s θ", frac("1", "2"), total("objects")),
        ),
        "g is the group minus what the picture leads to expect, r the same of whether the caption "
        "names the object though it is absent, and s the sign that other images give.",
        "A caption names a dog and a tie, and the picture has the dog and a cup: 1 object is "
        "invented, and 0.5 of those that are there are named.",
        """\
>>> import numpy as np
>>> from bias_pipeline.metrics.functional.invention import NamedObjects
>>> caption = NamedObjects(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 1.0]]))
>>> caption.absent.sum().item(), caption.recall.item()
(1.0, 0.5)""",
        "descriptions",
    ),
    "quality": Formula(
        (row("{} − {}", sub("CIDEr-D", "M"), sub("CIDEr-D", "H")),),
        "CIDEr-D (Vedantam et al. 2015) of the captioner's caption and of one person's, both "
        "against the captions of all "
        "other people; the mean over who is left out.",
        "The captioner writes what the only annotator wrote: CIDEr-D is 10. Without a second "
        "annotator there is none to subtract.",
        """\
>>> import bias_pipeline as bp
>>> animals = ["cat", "dog", "cow", "pig"] * 5
>>> captions = {i: f"a {animal} on a mat" for i, animal in enumerate(animals)}
>>> labels = {i: ["male", "female"][i % 2] for i in captions}
>>> rows = bp.score("quality", captions, labels, human=captions, seeds=1).frame()
>>> round(float(rows.loc[rows["part"] == "model", "value"].iloc[0]), 9)
10.0""",
        "counting",
    ),
}
