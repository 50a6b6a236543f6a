"""Watching a model whose training loop a library runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.watching.conftest import Toy, kept
from transformer.watching.callbacks import lightning_callback, trainer_callback


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers_reports_every_step_and_the_losses_that_it_logs(watched, tmp_path):
    from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments

    torch.manual_seed(2)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 8}
    model = BertForMaskedLM(BertConfig(vocab_size=11, max_position_embeddings=16, **sizes))
    ids = torch.randint(11, (12, 6))
    data = [{"input_ids": id_, "labels": id_} for id_ in ids]
    watch = watched(model, {"one": {"input_ids": ids[:1]}})
    how = TrainingArguments(
        str(tmp_path / "hf"),
        max_steps=6,
        per_device_train_batch_size=4,
        logging_steps=2,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(model, how, train_dataset=data, callbacks=[trainer_callback(watch)])
    trainer.train()
    view = kept(watch)
    assert view.state == "finished"
    assert view.frames.steps == tuple(range(7))
    logged = [one["loss"] for one in trainer.state.log_history if "loss" in one]
    losses = view.metrics.column("loss")
    np.testing.assert_allclose(losses[1::2], logged)
    assert np.isnan(losses[::2]).all()
    assert list(view.frame.axes) == [f"bert.encoder.layer.{i}.attention.self" for i in range(2)]


@pytest.mark.filterwarnings("ignore")
def test_lightning_reports_every_step_with_its_loss(watched, tmp_path):
    import lightning.pytorch as pl

    losses = []

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.toy = Toy()

        def training_step(self, batch, _):
            loss = ((self.toy(batch) - batch) ** 2).mean()
            losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    torch.manual_seed(2)
    model = Module()
    watch = watched(model.toy, {"line": torch.randn(1, 4, 5)})
    trainer = pl.Trainer(
        max_steps=5,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=tmp_path,
        callbacks=[lightning_callback(watch)],
    )
    trainer.fit(model, torch.utils.data.DataLoader(torch.randn(20, 6, 5), batch_size=4))
    view = kept(watch)
    assert (view.state, view.frames.steps) == ("finished", tuple(range(6)))
    np.testing.assert_allclose(view.metrics.column("loss"), losses)
