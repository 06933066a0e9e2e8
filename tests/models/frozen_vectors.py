"""Make minilm_vectors.json or mpnet_vectors.json anew, with sentence-transformers.

python -m tests.models.frozen_vectors minilm|mpnet [FOLDER]
"""

import json
import sys
from pathlib import Path

from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sentences import KINDS

MODELS = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "mpnet": "sentence-transformers/all-mpnet-base-v2",
}
TEXTS = (
    "a man rides a horse on the beach",
    "a [MASK] riding a wave on top of a surfboard",
    "a [UNK] of people [UNK] around a table with food",
    "two dogs.",
    "a person holding a tennis racquet on a tennis court in front of a large crowd of people",
)


def main(name: str, folder: str = "") -> None:
    from sentence_transformers import SentenceTransformer

    model = find_pretrained(folder or MODELS[name], KINDS)
    vectors = SentenceTransformer(str(model.folder), device="cpu").encode(list(TEXTS))
    rounded = [[round(float(number), 7) for number in vector] for vector in vectors]
    content = json.dumps({"texts": TEXTS, "vectors": rounded}, indent=None)
    Path(__file__).with_name(f"{name}_vectors.json").write_text(content + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
