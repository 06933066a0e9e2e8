"""The oldest transformers that is supported gives the vectors of the one that is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sentences import KINDS, Sentences, pooling_of
from tests.corpora import REPOSITORY
from tests.tiny_models import write_bert, write_gpt2

OLDEST = Path(os.environ.get("BIAS_PIPELINE_OLDEST", REPOSITORY / ".venv" / "oldest"))
TEXTS = ("a man rides a horse", "a <gender> with a dog", "the dog", "a <unk> of people")
EMBED = """\
import sys
import numpy as np
import torch
import transformers
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sentences import KINDS, Sentences, pooling_of
model = find_pretrained(sys.argv[1], KINDS)
own = Sentences(model, torch.device("cpu"), pooling_of(model, None, None))
np.save(sys.argv[2], own.embed(sys.argv[3:]))
print(transformers.__version__)
"""


def test_it_is_the_oldest_that_is_supported():
    text = (REPOSITORY / "pyproject.toml").read_text()
    oldest = re.search(r'"transformers>=([\d.]+)"', text)
    assert oldest
    assert f"transformers=={oldest[1]}.*" in (REPOSITORY / "Makefile").read_text()


@pytest.mark.skipif(not OLDEST.is_dir(), reason="`make oldest` installs it and runs this")
@pytest.mark.parametrize("write", [write_bert, write_gpt2])
def test_both_majors_of_transformers_give_the_same_vectors(write, tmp_path):
    import torch

    folder, result = tmp_path / "model", tmp_path / "found.npy"
    write(folder)
    path = os.pathsep.join([str(OLDEST), str(REPOSITORY)])
    command = [sys.executable, "-c", EMBED, str(folder), str(result), *TEXTS]
    output = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert output.stdout.startswith("4.")
    model = find_pretrained(str(folder), KINDS)
    sentences = Sentences(model, torch.device("cpu"), pooling_of(model, None, None))
    np.testing.assert_allclose(np.load(result), sentences.embed(TEXTS), rtol=0, atol=1e-5)
