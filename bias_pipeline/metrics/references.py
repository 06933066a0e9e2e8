"""The papers that define metrics. The ``info`` of a metric names the sections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """A paper, with the fields that BibTeX needs.

    Example:
        >>> Reference("a2020", ("Ash, A.", "Oak, B."), "On Trees", 2020, "Wood").citation
        'Ash and Oak 2020'
    """

    key: str  # key of its BibTeX entry
    authors: tuple[str, ...]  # `Surname, Given` each
    title: str  # in full
    year: int  # year of publication
    venue: str  # conference, journal or what else published it
    kind: str = "inproceedings"  # kind of the entry: `inproceedings`, `article` or `misc`
    doi: str = ""  # if it has one that helps to find it

    @property
    def citation(self) -> str:
        """The surnames and the year, as written in running text."""
        names = [author.partition(",")[0] for author in self.authors]
        names_text = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        return f"{names_text} {self.year}"

    def bibtex(self) -> str:
        fields = {
            "author": " and ".join(self.authors),
            "title": self.title,
            _VENUES[self.kind]: self.venue,
            "year": self.year,
            **({"doi": self.doi} if self.doi else {}),
        }
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
        return f"@{self.kind}{{{self.key},\n{lines}}}\n"


_VENUES = {"inproceedings": "booktitle", "article": "journal", "misc": "howpublished"}

BAKR_2024 = Reference(
    "bakr2024imagecaptioner2",
    ("Bakr, Eslam Mohamed", "Sun, Pengzhan", "Li, Li Erran", "Elhoseiny, Mohamed"),
    "ImageCaptioner2: Image Captioner for Image Captioning Bias Amplification Assessment",
    2024,
    "AAAI, 38(19): 20902-20911",
)
CHEN_2022 = Reference(
    "chen2022vl",
    ("Chen, Feiyang", "Dou, Zi-Yi"),
    "Measuring and Mitigating Bias in Vision-and-Language Models",
    2022,
    "Course project, UCLA",
    "misc",
)
DENKOWSKI_2014 = Reference(
    "denkowski2014meteor",
    ("Denkowski, Michael", "Lavie, Alon"),
    "Meteor Universal: Language Specific Translation Evaluation for Any Target Language",
    2014,
    "Workshop on Statistical Machine Translation",
)
FOULDS_2020 = Reference(
    "foulds2020differential",
    ("Foulds, James", "Islam, Rashidul", "Keya, Kamrun Naher", "Pan, Shimei"),
    "An Intersectional Definition of Fairness",
    2020,
    "ICDE",
)
FRASER_2024 = Reference(
    "fraser2024pairs",
    ("Fraser, Kathleen C.", "Kiritchenko, Svetlana"),
    "Examining Gender and Racial Bias in Large Vision-Language Models Using a Novel Dataset of "
    "Parallel Images",
    2024,
    "EACL",
)
GEYIK_2019 = Reference(
    "geyik2019",
    ("Geyik, Sahin Cem", "Ambler, Stuart", "Kenthapadi, Krishnaram"),
    "Fairness-Aware Ranking in Search & Recommendation Systems with Application to LinkedIn Talent "
    "Search",
    2019,
    "KDD",
)
HENDRICKS_2018 = Reference(
    "hendricks2018snowboard",
    (
        "Hendricks, Lisa Anne",
        "Burns, Kaylee",
        "Saenko, Kate",
        "Darrell, Trevor",
        "Rohrbach, Anna",
    ),
    "Women also Snowboard: Overcoming Bias in Captioning Models",
    2018,
    "ECCV",
)
HIROTA_2022 = Reference(
    "hirota2022lic",
    ("Hirota, Yusuke", "Nakashima, Yuta", "Garcia, Noa"),
    "Quantifying Societal Bias Amplification in Image Captioning",
    2022,
    "CVPR",
)
LIN_2019 = Reference(
    "lin2019disparity",
    ("Lin, Kun", "Sonboli, Nasim", "Mobasher, Bamshad", "Burke, Robin"),
    "Crank up the Volume: Preference Bias Amplification in Collaborative Recommendation",
    2019,
    "RMSE workshop at RecSys",
)
NAIR_2025 = Reference(
    "nair2025dbac",
    ("Nair, Rahul", "Tokas, Bhanu", "Kerner, Hannah"),
    "A Woman with a Knife or A Knife with a Woman? Measuring Directional Bias Amplification in "
    "Image Captions",
    2025,
    "Preprint",
    "misc",
)
NICOLAS_2021 = Reference(
    "nicolas2021dictionaries",
    ("Nicolas, Gandalf", "Bai, Xuechunzi", "Fiske, Susan T."),
    "Comprehensive Stereotype Content Dictionaries Using a Semi-Automated Method",
    2021,
    "European Journal of Social Psychology",
    "article",
    "10.1002/ejsp.2724",
)
PAPINENI_2002 = Reference(
    "papineni2002bleu",
    ("Papineni, Kishore", "Roukos, Salim", "Ward, Todd", "Zhu, Wei-Jing"),
    "BLEU: a Method for Automatic Evaluation of Machine Translation",
    2002,
    "ACL",
)
RELIC_2023 = Reference(
    "relic2023",
    ("Antequera, Paula", "Gonzalez, Egoitz", "Grasa, Marta", "van Raaphorst, Martijn"),
    "[Re] RELIC: Reproducibility and Extension on LIC metric in quantifying bias in captioning "
    "models",
    2023,
    "ReScience C",
    "article",
    doi="10.5281/zenodo.8173741",
)
ROBINSON_1988 = Reference(
    "robinson1988root",
    ("Robinson, Peter M.",),
    "Root-N-Consistent Semiparametric Regression",
    1988,
    "Econometrica",
    "article",
    "10.2307/1912705",
)
ROHRBACH_2018 = Reference(
    "rohrbach2018object",
    (
        "Rohrbach, Anna",
        "Hendricks, Lisa Anne",
        "Burns, Kaylee",
        "Darrell, Trevor",
        "Saenko, Kate",
    ),
    "Object Hallucination in Image Captioning",
    2018,
    "EMNLP",
    doi="10.18653/v1/D18-1437",
)
SABIR_2023 = Reference(
    "sabir2023lipstick",
    ("Sabir, Ahmed", "Padró, Lluís"),
    "Women Wearing Lipstick: Measuring the Bias Between an Object and Its Related Gender",
    2023,
    "Findings of EMNLP",
)
SESHADRI_2024 = Reference(
    "seshadri2024",
    ("Seshadri, Preethi", "Singh, Sameer", "Elazar, Yanai"),
    "The Bias Amplification Paradox in Text-to-Image Generation",
    2024,
    "NAACL",
)
TOKAS_2024 = Reference(
    "tokas2024dpa",
    ("Tokas, Bhanu", "Nair, Rahul", "Kerner, Hannah"),
    "Making Bias Amplification in Balanced Datasets Directional and Interpretable",
    2024,
    "Preprint",
    "misc",
)
VEDANTAM_2015 = Reference(
    "vedantam2015cider",
    ("Vedantam, Ramakrishna", "Zitnick, C. Lawrence", "Parikh, Devi"),
    "CIDEr: Consensus-based Image Description Evaluation",
    2015,
    "CVPR",
)
WANG_2019 = Reference(
    "wang2019leakage",
    ("Wang, Tianlu", "Zhao, Jieyu", "Yatskar, Mark", "Chang, Kai-Wei", "Ordonez, Vicente"),
    "Balanced Datasets Are Not Enough: Estimating and Mitigating Gender Bias in Deep Image "
    "Representations",
    2019,
    "ICCV",
)
WANG_2021 = Reference(
    "wang2021directional",
    ("Wang, Angelina", "Russakovsky, Olga"),
    "Directional Bias Amplification",
    2021,
    "ICML",
)
WANG_2021_QUERIES = Reference(
    "wang2021queries",
    ("Wang, Jialu", "Liu, Yang", "Wang, Xin Eric"),
    "Are Gender-Neutral Queries Really Gender-Neutral? Mitigating Gender Bias in Image Search",
    2021,
    "EMNLP",
)
ZHAO_2017 = Reference(
    "zhao2017mals",
    ("Zhao, Jieyu", "Wang, Tianlu", "Yatskar, Mark", "Ordonez, Vicente", "Chang, Kai-Wei"),
    "Men Also Like Shopping: Reducing Gender Bias Amplification using Corpus-level Constraints",
    2017,
    "EMNLP",
)
ZHAO_2023 = Reference(
    "zhao2023multi",
    ("Zhao, Dora", "Andrews, Jerone", "Xiang, Alice"),
    "Men Also Do Laundry: Multi-Attribute Bias Amplification",
    2023,
    "ICML",
)
