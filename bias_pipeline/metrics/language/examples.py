"""Example captions: how each object revises the caption's score for every group (Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.functional.gender_score import estimated
from bias_pipeline.metrics.language.caption_scoring import CaptionScorer, Judged, unit_vectors
from bias_pipeline.metrics.language.contexts import Contexts
from bias_pipeline.text.counterfactual_captions import told_of_nobody

MASK = "[MASK]"
Line = Mapping[str, object]


def example_lines(
    how: CaptionScorer, judged: Judged, contexts: Contexts, view: CorpusView, n_captions: int
) -> list[Line]:
    """Some captions of the captioner with each object of their picture.

    Args:
        how: judges captions.
        judged: the captions.
        contexts: of the pictures.
        view: of the corpus.
        n_captions: how many captions, drawn by a hash of their images' ids.

    Returns:
        A line a caption and object: image, caption, the group it names, object and ``P(c)``; for
        every group the ``P(g)`` of the caption written about it, its similarity to the object, its
        score, and the distance (the paper's word for a cosine) of the group's word to the object;
        the caption with the group's words masked, and filled for the group with the highest score,
        or the highest similarity alone.
    """
    captions = view.corpus.side("model")
    keys = random_words("examples", 0, view.corpus.keys[judged.images[judged.rows]])
    chosen = np.sort(np.argsort(keys, kind="stable")[:n_captions])
    if not len(chosen):
        return []
    masked = told_of_nobody(captions, view.attribute, MASK, {})
    terms = [how.terms.get(g, view.attribute.words[g][0]) for g in view.groups]
    vectors = unit_vectors(how.sentence_encoder, [*terms, *contexts.names])
    distances = vectors[len(terms) :] @ vectors[: len(terms)].T  # (U, K)
    fills = [estimated(scores)[0] for scores in (judged.score, judged.similarity)]
    lines: list[Line] = []
    for pair in np.flatnonzero(np.isin(judged.of, chosen)).tolist():
        text, at = int(judged.of[pair]), int(judged.pairs[pair])
        row = int(judged.rows[text])
        filled = [versions[text] for versions in judged.texts]
        by_group = {
            "P(g)": judged.likelihood[text],
            "similarity": judged.similarity[pair],
            "distance": distances[contexts.objects[at]],
            "score": judged.score[pair],
        }
        lines.append(
            {
                "image_id": view.corpus.ids[judged.images[row]],
                "caption": captions.text(row),
                "names": view.groups[judged.named[row]],
                "object": contexts.names[contexts.objects[at]],
                "P(c)": round(float(contexts.probabilities[at]), 6),
                **{
                    f"{what} {group}": round(float(value), 6)
                    for what, values in by_group.items()
                    for group, value in zip(view.groups, values, strict=True)
                },
                "masked": masked.text(row),
                "filled by score": filled[fills[0][pair]],
                "filled by similarity": filled[fills[1][pair]],
            }
        )
    return lines
