"""Captions as other programs write them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from tests.variants.files import CAPTIONS, IDS, PEOPLE, Variant, check, csv

NAME = "COCO_val2014_{:012d}.jpg"
PROMPT = "Provide a one-sentence caption for the provided image."


def lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sample(image: int, task: str = "coco", **document: Any) -> dict[str, Any]:
    """An entry of ``{date}_samples_{task}.jsonl``; document as older versions wrote it."""
    scored = {"answer": PEOPLE[image], "pred": CAPTIONS[image], "image_id": image, "id": 7 * image}
    metrics = {f"{task}_Bleu_4": scored, f"{task}_CIDEr": scored} if task else {"exact_match": 0.0}
    return {
        "doc_id": image - 100,
        **document,
        "target": str(PEOPLE[image]),
        "filtered_resps": [CAPTIONS[image]],
        "token_counts": [{"output_tokens": 8}],
        "doc_hash": "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
        **metrics,
        "input": PROMPT,
    }


SAMPLES = lines([sample(i) for i in IDS])
DOCUMENTS = lines(
    [sample(i, "", doc={"id": 9, "question_id": NAME.format(i), "answer": PEOPLE[i]}) for i in IDS]
)


def samples(*names: str) -> Callable[[Path], None]:
    """The folder of a model, as lmms-eval writes it."""

    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / "20260630_153532_results.json").write_text("{}")
        for name in names:
            (folder / name).write_text(SAMPLES)

    return write


def answer(custom_id: str, text: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]}
    response = {"status_code": 200, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}


def batch(form: str) -> str:
    return lines([answer(form.format(i), text) for i, text in CAPTIONS.items()])


def rows(make: Callable[[str, str], Mapping[str, Any]]) -> dict[str, str]:
    """A file with a row for each image, made from the image's id and its caption."""
    return {"mine.jsonl": lines([make(str(i), text) for i, text in CAPTIONS.items()])}


def response(image: str, text: str) -> dict[str, Any]:
    """An answer of OpenAI's responses in a batch, with reasoning before it."""
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    body = {"object": "response", "output": [{"type": "reasoning", "summary": []}, message]}
    return {"custom_id": image, "response": {"status_code": 200, "body": body}, "error": None}


def message(image: str, text: str) -> dict[str, Any]:
    """A result of Anthropic's message batches."""
    reply = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"custom_id": image, "result": {"type": "succeeded", "message": reply}}


def candidate(image: str, text: str) -> dict[str, Any]:
    """A row of a batch of Gemini, with a thought before the answer."""
    parts = [{"text": "Is it a man?", "thought": True}, {"text": text}]
    return {"key": image, "response": {"candidates": [{"content": {"parts": parts}}]}}


def chat(image: str, text: str) -> dict[str, Any]:
    request = [{"type": "image"}, {"type": "text", "text": "Is it a man? Describe it."}]
    turns = [{"role": "user", "content": request}, {"role": "assistant", "content": text}]
    return {"images": [f"coco/{image}.jpg"], "messages": turns}


REQUESTS = lines(
    [
        {"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": {}}
        for i in IDS
    ]
)


def conversations(*answers: str) -> str:
    def turns(text: str) -> list[dict[str, str]]:
        pairs = [
            [{"from": "human", "value": "<image>\nDescribe it."}, {"from": "gpt", "value": reply}]
            for reply in (text, *answers)
        ]
        return [turn for pair in pairs for turn in pair]

    return json.dumps(
        [
            {"id": f"c{i}", "image": f"coco/train2017/{i:012d}.jpg", "conversations": turns(text)}
            for i, text in CAPTIONS.items()
        ]
    )


def questions(form: str) -> str:
    fields = {"prompt": PROMPT, "answer_id": "x", "model_id": "llava-v1.5-7b", "metadata": {}}
    return lines(
        [{"question_id": form.format(i), "text": t, **fields} for i, t in CAPTIONS.items()]
    )


def sheet(**columns: Sequence[object]) -> dict[str, list[object]]:
    """The columns of a VLMEvalKit sheet."""
    return {
        "index": list(range(len(IDS))),
        **{name: list(column) for name, column in columns.items()},
        "question": [PROMPT] * len(IDS),
        "answer": [str(PEOPLE[i]) for i in IDS],
        "prediction": list(CAPTIONS.values()),
    }


PATHS = [f"/data/images/COCO/{NAME.format(i)}" for i in IDS]


def tsv(path: Path) -> None:
    pd.DataFrame(sheet(image_path=PATHS)).to_csv(path, sep="\t", index=False)


def xlsx(path: Path) -> None:
    pd.DataFrame(sheet(image_path=PATHS)).to_excel(path, index=False, engine="openpyxl")


def table(**columns: Any) -> pa.Table:
    texts = list(CAPTIONS.values())
    return pa.table({**columns, "caption": texts})


def pictures() -> pa.Array:
    """As Hugging Face's data sets store pictures."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([{"bytes": b"\xff\xd8", "path": NAME.format(i)} for i in IDS], kind)


def save(folder: Path, content: pa.Table) -> None:
    """As ``save_to_disk`` of Hugging Face's datasets."""
    folder.mkdir(parents=True)
    files = [f"data-0000{k}-of-00002.arrow" for k in range(2)]
    for k, name in enumerate(files):
        half = content.slice(k * (len(content) // 2), len(content) // 2)
        with ipc.new_stream(str(folder / name), content.schema) as writer:
            writer.write_table(half, max_chunksize=4)
    state = {"_data_files": [{"filename": name} for name in files], "_format_type": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def parts(*names: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for name in names:
            save(folder / name, table(image_id=list(IDS)))
        (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(names)}))

    return write


VARIANTS = [
    Variant(
        "lmms-eval's samples, with human captions",
        {"mine.jsonl": SAMPLES},
        "mine.jsonl: samples of lmms-eval, human captions from 'answer'",
        without_people=True,
    ),
    Variant(
        "lmms-eval's samples, with human captions in another file",
        {"mine.jsonl": SAMPLES},
        "mine.jsonl: samples of lmms-eval",
    ),
    Variant(
        "lmms-eval's samples, used only for their human captions",
        {"people.jsonl": SAMPLES},
        "people.jsonl: samples of lmms-eval",
    ),
    Variant(
        "lmms-eval's samples whose `doc` has the name of the picture",
        {"mine.jsonl": DOCUMENTS},
        "image ids are used without folder and ending",
    ),
    Variant(
        "a folder with one model's samples of one task",
        {"mine": samples("20260630_153532_samples_coco2014_cap_val.jsonl")},
        "20260630_153532_samples_coco2014_cap_val.jsonl: samples of lmms-eval, human "
        "captions from 'answer'",
        without_people=True,
    ),
    Variant(
        "a folder with samples of two tasks",
        {
            "mine": samples(
                "20260630_153532_samples_coco2014_cap_val.jsonl",
                "samples_flickr30k_test_2024-09-01T12-00-00.jsonl",
            )
        },
        "has samples of the tasks coco2014_cap_val, flickr30k_test; name one of its files",
        code=3,
    ),
    Variant(
        "samples of two tasks in one file",
        {"mine.jsonl": SAMPLES + lines([sample(100, "flickr")])},
        "line 13: its metrics (flickr_Bleu_4, flickr_CIDEr) are of another task than the entries "
        "before it (coco_Bleu_4, coco_CIDEr); keep one task in a file",
        code=3,
    ),
    Variant(
        "a file of samples that was cut off",
        {"mine.jsonl": SAMPLES[:-60]},
        "The file seems to be cut off: fetch or make it again",
        code=3,
    ),
    Variant(
        "samples of images in another split",
        {"mine.jsonl": SAMPLES.replace('"image_id": 1', '"image_id": 391')},
        "the captions have ids such as 39100, 39101, 39102, 39103, 39104, the labels such "
        "as 100, 101, 102, 103, 104; they are of another split or data set",
        code=3,
    ),
    Variant("answers of a batch", {"mine.jsonl": batch(NAME)}, "mine.jsonl: answers of a batch"),
    Variant(
        "answers of a batch in OpenAI's responses format",
        rows(response),
        "mine.jsonl: answers of a batch",
    ),
    Variant(
        "answers of a batch in Anthropic's messages format",
        rows(message),
        "mine.jsonl: answers of a batch of messages",
    ),
    Variant(
        "answers of a batch by Gemini", rows(candidate), "mine.jsonl: answers of a batch of Gemini"
    ),
    Variant("chats (`messages` with `role` and `content`)", rows(chat), "mine.jsonl: chats"),
    Variant(
        "a batch's requests",
        {"mine.jsonl": REQUESTS},
        "holds the requests of a batch; name the file of its answers",
        code=3,
    ),
    Variant(
        "answers of a batch whose requests are numbered",
        {"mine.jsonl": batch("request-{}")},
        "no caption is of a labelled image: the captions have ids such as request-100",
        code=3,
    ),
    Variant(
        "LLaVA's conversations", {"mine.json": conversations()}, "mine.json: conversations of LLaVA"
    ),
    Variant(
        "LLaVA's conversations with several answers",
        {"mine.json": conversations("a dog")},
        "choose one with dataset.multi_caption=true",
        code=3,
    ),
    Variant(
        "LLaVA's answers whose question ids are names of pictures",
        {"mine.jsonl": questions(NAME)},
        "mine.jsonl: answers of LLaVA",
    ),
    Variant(
        "LLaVA's answers to numbered questions",
        {"mine.jsonl": questions("{}")},
        "no other column is known for image ids; found question_id ('100')",
        code=3,
    ),
    Variant(
        "LLaVA's answers, if an option says that question numbers are image ids",
        {"mine.jsonl": questions("{}")},
        words=("--id-column", "question_id"),
    ),
    Variant(
        "results of LAVIS and BLIP (`val_epoch0.json`)",
        {"mine.json": json.dumps([{"caption": t, "image_id": i} for i, t in CAPTIONS.items()])},
    ),
    Variant(
        "VLMEvalKit's `.tsv`, with human captions",
        {"mine.tsv": tsv},
        "mine.tsv: a sheet of VLMEvalKit, human captions from 'answer'",
        without_people=True,
    ),
    Variant(
        "VLMEvalKit's `.xlsx`, with human captions",
        {"mine.xlsx": xlsx},
        "mine.xlsx: a sheet of VLMEvalKit, human captions from 'answer'",
        without_people=True,
    ),
    Variant(
        "VLMEvalKit's sheet without paths of pictures, where `index` is the row number",
        {"mine.tsv": csv(sheet(), "\t")},
        "no other column is known for image ids; found index ('0')",
        code=3,
    ),
    Variant(
        "VLMEvalKit's sheet, if an option says that `index` is the image id",
        {"mine.tsv": csv({**sheet(), "index": list(IDS)}, "\t")},
        words=("--id-column", "index"),
    ),
    Variant("a broken spreadsheet", {"mine.xlsx": b"PK"}, "not a readable .xlsx file", code=3),
    Variant(
        "a folder of Hugging Face's datasets",
        {"mine": lambda folder: save(folder, table(image_id=list(IDS)))},
    ),
    Variant(
        "a folder of Hugging Face's datasets, with pictures",
        {"mine": lambda folder: save(folder, table(image=pictures()))},
        "mine: image ids from 'image'",
    ),
    Variant("a folder of Hugging Face's datasets with one split", {"mine": parts("test")}),
    Variant(
        "a folder of Hugging Face's datasets with two splits",
        {"mine": parts("validation", "test")},
        "has 2 parts; name one of them",
        code=3,
    ),
    Variant(
        "Parquet files of Hugging Face's datasets, with pictures",
        {"mine.parquet": lambda path: parquet.write_table(table(image=pictures()), path)},
        "mine.parquet: image ids from 'image'",
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_programs(tmp_path, variant):
    if any(name.endswith(".xlsx") for name in variant.files):
        pytest.importorskip("openpyxl")
    check(tmp_path, variant)
