"""Bias of each epoch: what is collected, what is logged by a real trainer of Lightning."""

import math
from typing import Any

import pytest
from torch import Tensor, nn, tensor
from torch.optim import SGD
from torch.utils.data import DataLoader

import bias_pipeline as bp
from bias_pipeline.errors import UsageError
from bias_pipeline.integrations.epochs import CaptionBias, bias_callback

LABELS = {i: ("male", "female")[i % 2] for i in range(60)}
SMALL = {"seeds": 1, "stats": {"resamples": 20}}


def caption_of(i: int, right: bool) -> str:
    return f"a {('man', 'woman')[i % 2 if right else 0]} with a {('dog', 'cake')[i % 2]}"


def test_batches_add_up_to_the_score_of_all():
    captions = {i: caption_of(i, right=i > 10) for i in LABELS}
    bias = CaptionBias(LABELS, ["gender_error", "leakage"], **SMALL)
    for start in range(0, 60, 7):
        ids = range(start, min(start + 7, 60))
        bias.update(ids, [captions[i] for i in ids])
    whole = bp.score("gender_error", captions, LABELS, **SMALL).rows[0]
    assert bias.compute()["gender_error"] == whole.value > 0


def test_a_metric_without_a_score_gives_the_captioner_s_level():
    bias = CaptionBias(LABELS, ["leakage"], **SMALL)
    bias.update(LABELS, [caption_of(i, right=True) for i in LABELS])
    assert bias.compute()["leakage"] > 0.9


def test_two_headlines_have_two_names():
    captions = [caption_of(i, right=True) for i in LABELS]
    objects = {i: [("dog", "cake")[i % 2]] for i in LABELS}
    bias = CaptionBias(LABELS, ["ba_directional"], objects=objects, **SMALL)
    bias.update(LABELS, captions)
    assert set(bias.compute()) == {"ba_directional:a_to_t", "ba_directional:t_to_a"}


def test_a_reset_forgets():
    bias = CaptionBias(LABELS, ["gender_error"])
    bias.update([0], ["a man"])
    bias.reset()
    with pytest.raises(UsageError, match="no captions were added"):
        bias.compute()


def test_a_batch_of_uneven_lengths_is_refused():
    with pytest.raises(UsageError, match="a batch differ: 2 ids and 1 caption"):
        CaptionBias(LABELS).update([1, 2], ["a man"])


def test_ids_may_be_a_tensor_as_lightning_collates_them():
    bias = CaptionBias(LABELS, ["gender_error"])
    bias.update(tensor(list(LABELS)), [caption_of(i, right=i > 10) for i in LABELS])
    plain = CaptionBias(LABELS, ["gender_error"])
    plain.update(LABELS, [caption_of(i, right=i > 10) for i in LABELS])
    assert bias.compute() == plain.compute()


def test_captions_of_images_without_a_label_do_not_count():
    bias = CaptionBias({0: "male", 1: "female"}, ["gender_error"])
    bias.update([0, 1, 2, 3], ["a man", "a man", "a man", "a man"])
    assert bias.compute() == {"gender_error": 0.5}


def test_labels_of_images_without_a_caption_do_not_count():
    bias = CaptionBias(LABELS, "gender_error")
    bias.update([0, 1], ["a man", "a man"])
    assert bias.compute() == {"gender_error": 0.5}


def test_an_unknown_metric_is_refused_before_training():
    with pytest.raises(UsageError, match="did you mean 'gender_error'"):
        CaptionBias(LABELS, ["gender_eror"])


@pytest.mark.parametrize("text", ["", "a man"], ids=["blank", "scored"])
def test_captions_that_cannot_be_scored_give_nan_and_training_goes_on(text):
    class Trainer:
        sanity_checking = False

    class Module:
        def log_dict(self, numbers: dict[str, float]) -> None:
            self.logged = numbers

    bias = CaptionBias(LABELS, ["gender_error"])
    callback: Any = bias_callback(bias, lambda captioner, batch: (LABELS, [text] * len(LABELS)))
    one = Module()
    callback.on_validation_batch_end(Trainer(), one, None, None, 0)
    callback.on_validation_epoch_end(Trainer(), one)
    assert set(one.logged) == {"bias/gender_error"}
    assert math.isnan(one.logged["bias/gender_error"]) == (not text)


def test_a_number_that_is_undefined_is_logged_with_the_reason(caplog):
    class Trainer:
        sanity_checking = False

    class Module:
        def log_dict(self, numbers: dict[str, float]) -> None:
            assert math.isnan(numbers["bias/gender_error"])

    bias = CaptionBias(LABELS, ["gender_error"])
    callback: Any = bias_callback(bias, lambda captioner, batch: (LABELS, ["a dog"] * len(LABELS)))
    callback.on_validation_batch_end(Trainer(), Module(), None, None, 0)
    callback.on_validation_epoch_end(Trainer(), Module())
    assert "gender_error is undefined: the captioner names one group" in caplog.text


class SanityCheck:
    """A trainer before its first epoch."""

    sanity_checking = True


def sanity_checked(text: str, **settings: Any) -> None:
    bias = CaptionBias({0: "male", 1: "female"}, ["gender_error"], **settings)
    callback: Any = bias_callback(bias, lambda captioner, batch: ([0, 1], [text] * 2))
    callback.on_validation_batch_end(SanityCheck(), None, None, None, 0)
    callback.on_validation_epoch_end(SanityCheck(), None)


def test_a_wrong_setting_ends_training_before_its_first_epoch():
    with pytest.raises(UsageError, match="did you mean 'seeds'"):
        sanity_checked("a man", seed=3)


def test_a_data_set_that_is_no_settings_is_refused_in_a_sentence():
    with pytest.raises(UsageError, match="dataset='coco': captions and labels are the data set"):
        sanity_checked("a man", dataset="coco")


def test_blank_captions_of_the_sanity_check_are_not_warned_of(caplog):
    sanity_checked("")
    assert not caplog.records


@pytest.mark.parametrize("name", ["gender_error", "ba_directional"])
def test_undefined_numbers_have_the_names_of_computed_ones(name):
    objects = {i: [("dog", "cake")[i % 2]] for i in LABELS}
    bias = CaptionBias(LABELS, name, objects=objects, **SMALL)
    bias.update(LABELS, [caption_of(i, right=True) for i in LABELS])
    assert set(bias.undefined()) == set(bias.compute())


def module() -> Any:
    """A captioner that calls everyone a man in its first epoch, and then does not."""
    from pytorch_lightning import LightningModule

    class Captioner(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tensor(1.0))

        def training_step(self, batch: Tensor) -> Tensor:
            return self.weight**2

        def validation_step(self, batch: Tensor) -> None:
            pass

        def configure_optimizers(self) -> SGD:
            return SGD(self.parameters(), lr=0.1)

        def caption(self, i: int) -> str:
            return caption_of(i, right=self.current_epoch > 0)

    return Captioner()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Lightning, about loaders without workers
def test_a_trainer_logs_each_epoch(tmp_path):
    from pytorch_lightning import Trainer
    from pytorch_lightning.loggers import CSVLogger

    def captions_of(captioner: Any, batch: Tensor) -> tuple[list[int], list[str]]:
        ids = [int(i) for i in batch]
        return ids, [captioner.caption(i) for i in ids]

    bias = CaptionBias(LABELS, ["gender_error"], **SMALL)
    images: DataLoader[int] = DataLoader(list(LABELS), batch_size=16)
    shown = ("enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    callbacks, logger = [bias_callback(bias, captions_of)], CSVLogger(tmp_path)
    quiet = dict.fromkeys(shown, False)
    trainer = Trainer(max_epochs=2, accelerator="cpu", logger=logger, callbacks=callbacks, **quiet)
    trainer.fit(module(), images, images)
    (log,) = tmp_path.rglob("metrics.csv")
    lines = [line.split(",") for line in log.read_text().splitlines()]
    column = lines[0].index("bias/gender_error")
    assert [float(line[column]) for line in lines[1:] if line[column]] == [0.5, 0.0]


def test_several_processes_are_refused():
    class Parts:
        world_size = 2

    callback: Any = bias_callback(CaptionBias(LABELS), lambda captioner, batch: ([], []))
    with pytest.raises(UsageError, match="2 processes each see a part of the images"):
        callback.setup(Parts(), None, "fit")
