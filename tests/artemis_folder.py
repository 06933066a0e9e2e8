"""A folder like that of ArtEmis, filled with sixty rows that were written by hand."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from bias_pipeline.published.artemis import FILES

HEADER = ("art_style", "painting", "emotion", "utterance", "repetition")

# Five annotators each; the last painting is one of those that very many annotated.
RELEASE = """\
Realism|ivan-petrov_storm-at-sea-1850|fear|The waves are about to swallow the little boat.|5
Realism|ivan-petrov_storm-at-sea-1850|fear|I would not want to be out there tonight|5
Realism|ivan-petrov_storm-at-sea-1850|awe|The sea is huge, and the light on it is wonderful.|5
Realism|ivan-petrov_storm-at-sea-1850|fear|dark clouds and no land in sight, it frightens me|5
Realism|ivan-petrov_storm-at-sea-1850|sadness|The sailors will never see their families again.|5
Realism|anna-lund_old-woman-with-bread|sadness|She is alone, and her table is nearly empty.|5
Realism|anna-lund_old-woman-with-bread|sadness|her tired eyes make me think of my grandmother|5
Realism|anna-lund_old-woman-with-bread|contentment|Warm bread and soft light feel like home.|5
Realism|anna-lund_old-woman-with-bread|contentment|A simple meal and a quiet evening, what else?|5
Realism|anna-lund_old-woman-with-bread|something else|I wonder what she is thinking about.|5
Impressionism|eugÃ¨ne-roux_the-beach-at-noon|contentment|The sun makes me want a holiday.|5
Impressionism|eugÃ¨ne-roux_the-beach-at-noon|contentment|Nobody here is in a hurry.|5
Impressionism|eugÃ¨ne-roux_the-beach-at-noon|amusement|Itâ€™s funny how they bathe in clothes.|5
Impressionism|eugÃ¨ne-roux_the-beach-at-noon|contentment|soft blue and yellow, a calm day|5
Impressionism|eugÃ¨ne-roux_the-beach-at-noon|excitement|I can hear the children shout and run|5
Impressionism|marie-duval_garden-with-a-dog|amusement|The dog looks as if it owned the garden.|5
Impressionism|marie-duval_garden-with-a-dog|amusement|that dog has stolen the hat|5
Impressionism|marie-duval_garden-with-a-dog|contentment|I would like to sit among flowers.|5
Impressionism|marie-duval_garden-with-a-dog|amusement||5
Impressionism|marie-duval_garden-with-a-dog|excitement|So many colours, it makes me want to paint.|5
Expressionism|otto-kranz_the-shouting-man|anger|His mouth is wide open and his fist is up.|5
Expressionism|otto-kranz_the-shouting-man|anger|red everywhere, he is furious with somebody|5
Expressionism|otto-kranz_the-shouting-man|fear|I would run away from this man at once.|5
Expressionism|otto-kranz_the-shouting-man|disgust|The green skin looks rotten to me.|5
Expressionism|otto-kranz_the-shouting-man|anger|why so much hate|5
Expressionism|lena-vogt_the-sick-room|disgust|The stained sheets turn my stomach.|5
Expressionism|lena-vogt_the-sick-room|sadness|nobody visits him, and he is about to die|5
Expressionism|lena-vogt_the-sick-room|disgust|I can nearly smell the room, it is foul.|5
Expressionism|lena-vogt_the-sick-room|fear|It reminds me of the hospital where I was ill.|5
Expressionism|lena-vogt_the-sick-room|disgust|The yellow walls and the bowl are revolting|5
Romanticism|carl-berg_mountains-at-dawn|awe|The peaks glow and the valley is still asleep.|5
Romanticism|carl-berg_mountains-at-dawn|awe|I feel very small in front of such mountains.|5
Romanticism|carl-berg_mountains-at-dawn|awe|what a light, as on the first morning|5
Romanticism|carl-berg_mountains-at-dawn|contentment|The air must be fresh, and there is no noise.|5
Romanticism|carl-berg_mountains-at-dawn|excitement|I want to put on my boots and climb up there!|5
Romanticism|joÃ£o-silva_ruin-by-moonlight|fear|Something moves behind the broken window.|5
Romanticism|joÃ£o-silva_ruin-by-moonlight|awe|The old stones have seen so many years.|5
Romanticism|joÃ£o-silva_ruin-by-moonlight|fear|a ruin, the moon, and me alone with the owls|5
Romanticism|joÃ£o-silva_ruin-by-moonlight|awe|The moonlight turns the walls into silver.|5
Romanticism|joÃ£o-silva_ruin-by-moonlight|sadness|Once people danced here, and now nothing.|5
Pop_Art|bob-ray_three-cans|amusement|Who hangs three cans on a wall?|5
Pop_Art|bob-ray_three-cans|something else|I am bored, it is only a shop window|5
Pop_Art|bob-ray_three-cans|something else|It makes me hungry, to be honest.|5
Pop_Art|bob-ray_three-cans|amusement|The labels smile more than the people who buy them.|5
Pop_Art|bob-ray_three-cans|something else|no idea|5
Pop_Art|bob-ray_dance-hall|excitement|The music is loud and everybody jumps.|5
Pop_Art|bob-ray_dance-hall|excitement|Pink, orange and green, what a party!|5
Pop_Art|bob-ray_dance-hall|excitement|I want to dance with the girl in the middle|5
Pop_Art|bob-ray_dance-hall|amusement|The man on the left has two left feet.|5
Pop_Art|bob-ray_dance-hall|excitement| |5
Baroque|pieter-maas_still-life-with-fly|disgust|There is a fly on the cheese and nobody cares.|5
Baroque|pieter-maas_still-life-with-fly|awe|Every drop on the grapes is painted like glass.|5
Baroque|pieter-maas_still-life-with-fly|contentment|ripe fruit, good wine and a clean cloth|5
Baroque|pieter-maas_still-life-with-fly|disgust|The meat has been lying there for days.|5
Baroque|pieter-maas_still-life-with-fly|awe|How can anyone paint so well?|5
Baroque|pieter-maas_the-night-guard|awe|So many faces, and each has a story of its own.|44
Baroque|pieter-maas_the-night-guard|awe|The light falls on the captain as on a stage.|44
Baroque|pieter-maas_the-night-guard|excitement|They are about to march, I hear the drum.|44
Baroque|pieter-maas_the-night-guard|something else|I like the little girl between the soldiers.|44
Baroque|pieter-maas_the-night-guard|awe|masterly|44
"""
ROWS = [tuple(line.split("|")) for line in RELEASE.splitlines()]
# The file as a WikiArt archive may have the name, in another wrong encoding.
FILE_NAMES = {"Impressionism/eugÃ¨ne-roux_the-beach-at-noon": "eug├¿ne-roux_the-beach-at-noon"}
STYLES_OF = {f"{style}/{painting}": style for style, painting, *_ in ROWS}


def table(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def contrastive(rows: Sequence[Sequence[str]]) -> str:
    """The rows as version 2 has them, each chosen to contrast with the first painting."""
    header = ("emotion", "utterance", "art_style", "painting")
    anchors = ("anchor_art_style", "anchor_painting", "repetition")
    lines = [(e, u, style, name, *rows[0][:2], n) for style, name, e, u, n in rows]
    return table(lines, (*header, *anchors))


def write_folder(root: Path, rows: Sequence[Sequence[str]] = ROWS, version: int = 1) -> Path:
    """Write a release file and the captions of one captioner, ``mine``."""
    root.mkdir(parents=True, exist_ok=True)
    text = table(rows) if version == 1 else contrastive(rows)
    (root / FILES[version]).write_text(text, encoding="utf-8")
    captions = [
        {"image_id": f"{painting}.jpg", "caption": f"the paint of picture {n} moves me"}
        for n, painting in enumerate(STYLES_OF)
    ]
    (root / "captioners").mkdir(exist_ok=True)
    (root / "captioners" / "mine.json").write_text(json.dumps(captions), encoding="utf-8")
    return root


def draw_pictures(root: Path) -> Path:
    """Write a small picture of each painting under a name as WikiArt's archive may have it."""
    for number, (painting, style) in enumerate(STYLES_OF.items()):
        name = FILE_NAMES.get(painting, painting.partition("/")[2])
        (root / style).mkdir(parents=True, exist_ok=True)
        shade = np.full((8, 8, 3), 9 * number, np.uint8)
        Image.fromarray(shade).save(root / style / f"{name}.jpg")
    return root
