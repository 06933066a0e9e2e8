"""The witness shares no code with what it bears witness of."""

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ASKING = {"cases", "conftest"}  # these ask bias_pipeline for its numbers
WITNESS = [
    path
    for path in sorted(HERE.glob("*.py"))
    if not path.stem.startswith("test_") and path.stem not in ASKING
]
IMAGES = {"from bias_pipeline.corpus.corpus import Record"}
# What is drawn by a key has no second way to be drawn.
DRAWS = {"alike": {"from bias_pipeline.io.hashing import hash_ids, random_words"}}


@pytest.mark.parametrize("path", WITNESS, ids=lambda path: path.stem)
def test_of_bias_pipeline_it_knows_images_alone_and_asks_for_no_numbers(path):
    text = path.read_text(encoding="utf-8")
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]
    imports = {ast.unparse(node) for node in nodes}
    assert {line for line in imports if "bias_pipeline" in line} <= IMAGES | DRAWS.get(
        path.stem, set()
    )
    assert not any(f"tests.witness.{name}" in text for name in ASKING)
