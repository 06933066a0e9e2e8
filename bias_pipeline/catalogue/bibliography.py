"""What to cite: the sources of every metric, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

# Metric to the keys of what it comes from.
SOURCES: dict[str, tuple[str, ...]] = {
    "lic": ("hirota2022lic", "relic2023"),
    "leakage": ("wang2019leakage",),
    "dbac": ("nair2025dbac",),
    "dpa": ("tokas2024dpa",),
    "ba_mals": ("zhao2017mals",),
    "ba_directional": ("wang2021directional",),
    "multi_directional": ("zhao2023multi",),
    "differential_fairness": ("foulds2020differential",),
    "gender_error": ("hendricks2018snowboard",),
    "gender_ratio": ("hendricks2018snowboard",),
    "group_accuracy": ("tang2021gaic",),
    "cooccurrence": ("zhao2017mals", "hendricks2018snowboard", "seshadri2024"),
    "quality": ("vedantam2015cider", "papineni2002bleu", "denkowski2014meteor"),
}

_ENTRIES: dict[str, tuple[str, dict[str, str]]] = {
    "vedantam2015cider": (
        "inproceedings",
        {
            "author": "Vedantam, Ramakrishna and Zitnick, C. Lawrence and Parikh, Devi",
            "title": "CIDEr: Consensus-based Image Description Evaluation",
            "booktitle": "CVPR",
            "year": "2015",
        },
    ),
    "papineni2002bleu": (
        "inproceedings",
        {
            "author": "Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing",
            "title": "BLEU: a Method for Automatic Evaluation of Machine Translation",
            "booktitle": "ACL",
            "year": "2002",
        },
    ),
    "denkowski2014meteor": (
        "inproceedings",
        {
            "author": "Denkowski, Michael and Lavie, Alon",
            "title": "Meteor Universal: Language Specific Translation Evaluation for Any Target "
            "Language",
            "booktitle": "Workshop on Statistical Machine Translation",
            "year": "2014",
        },
    ),
    "hirota2022lic": (
        "inproceedings",
        {
            "author": "Hirota, Yusuke and Nakashima, Yuta and Garcia, Noa",
            "title": "Quantifying Societal Bias Amplification in Image Captioning",
            "booktitle": "CVPR",
            "year": "2022",
        },
    ),
    "relic2023": (
        "article",
        {
            "author": "Antequera, Paula and Gonzalez, Egoitz and Grasa, Marta and van Raaphorst, "
            "Martijn",
            "title": "[Re] RELIC: Reproducibility and Extension on LIC metric in quantifying bias "
            "in captioning models",
            "journal": "ReScience C",
            "year": "2023",
            "doi": "10.5281/zenodo.8173741",
        },
    ),
    "wang2019leakage": (
        "inproceedings",
        {
            "author": "Wang, Tianlu and Zhao, Jieyu and Yatskar, Mark and Chang, Kai-Wei and "
            "Ordonez, Vicente",
            "title": "Balanced Datasets Are Not Enough: Estimating and Mitigating Gender Bias in "
            "Deep Image Representations",
            "booktitle": "ICCV",
            "year": "2019",
        },
    ),
    "nair2025dbac": (
        "misc",
        {
            "author": "Nair, Rahul and Tokas, Bhanu and Kerner, Hannah",
            "title": "A Woman with a Knife or A Knife with a Woman? Measuring Directional Bias "
            "Amplification in Image Captions",
            "year": "2025",
            "howpublished": "Preprint",
        },
    ),
    "tokas2024dpa": (
        "misc",
        {
            "author": "Tokas, Bhanu and Nair, Rahul and Kerner, Hannah",
            "title": "Making Bias Amplification in Balanced Datasets Directional and Interpretable",
            "year": "2024",
            "howpublished": "Preprint",
        },
    ),
    "zhao2017mals": (
        "inproceedings",
        {
            "author": "Zhao, Jieyu and Wang, Tianlu and Yatskar, Mark and Ordonez, Vicente and "
            "Chang, Kai-Wei",
            "title": "Men Also Like Shopping: Reducing Gender Bias Amplification using "
            "Corpus-level Constraints",
            "booktitle": "EMNLP",
            "year": "2017",
        },
    ),
    "wang2021directional": (
        "inproceedings",
        {
            "author": "Wang, Angelina and Russakovsky, Olga",
            "title": "Directional Bias Amplification",
            "booktitle": "ICML",
            "year": "2021",
        },
    ),
    "zhao2023multi": (
        "inproceedings",
        {
            "author": "Zhao, Dora and Andrews, Jerone and Xiang, Alice",
            "title": "Men Also Do Laundry: Multi-Attribute Bias Amplification",
            "booktitle": "ICML",
            "year": "2023",
        },
    ),
    "foulds2020differential": (
        "inproceedings",
        {
            "author": "Foulds, James and Islam, Rashidul and Keya, Kamrun Naher and Pan, Shimei",
            "title": "An Intersectional Definition of Fairness",
            "booktitle": "ICDE",
            "year": "2020",
        },
    ),
    "hendricks2018snowboard": (
        "inproceedings",
        {
            "author": "Hendricks, Lisa Anne and Burns, Kaylee and Saenko, Kate and Darrell, Trevor "
            "and Rohrbach, Anna",
            "title": "Women also Snowboard: Overcoming Bias in Captioning Models",
            "booktitle": "ECCV",
            "year": "2018",
        },
    ),
    "tang2021gaic": (
        "inproceedings",
        {
            "author": "Tang, Ruixiang and Du, Mengnan and Li, Yuening and Liu, Zirui and Zou, Na "
            "and Hu, Xia",
            "title": "Mitigating Gender Bias in Captioning Systems",
            "booktitle": "WWW",
            "year": "2021",
        },
    ),
    "seshadri2024": (
        "inproceedings",
        {
            "author": "Seshadri, Preethi and Singh, Sameer and Elazar, Yanai",
            "title": "The Bias Amplification Paradox in Text-to-Image Generation",
            "booktitle": "NAACL",
            "year": "2024",
        },
    ),
}


def bibtex(metrics: Iterable[str]) -> str:
    """BibTeX of the sources of some metrics, each once; a metric of one's own has none here.

    Example:
        >>> bibtex(["lic", "own"]).startswith("@inproceedings{hirota2022lic,")
        True
    """
    keys = dict.fromkeys(key for metric in metrics for key in SOURCES.get(metric, ()))
    return "\n".join(_entry(key, *_ENTRIES[key]) for key in keys)


def _entry(key: str, kind: str, fields: dict[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}}}\n"
