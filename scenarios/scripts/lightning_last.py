"""Lightning with ModelCheckpoint and ckpt_path="last"; --asynchronous saves by AsyncCheckpointIO, --temporary stands for TMPDIR."""

import argparse
import logging
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
arguments = argparse.ArgumentParser()
arguments.add_argument("--out", required=True)
arguments.add_argument("--asynchronous", action="store_true")
arguments.add_argument("--temporary")
chosen = arguments.parse_args()
tempfile.tempdir = chosen.temporary
lightning.seed_everything(0, verbose=False)


class Model(lightning.LightningModule):
    """One linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        return self.layer(batch).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())

    def on_load_checkpoint(self, checkpoint: dict[str, object]) -> None:
        print(f"resumed from step {checkpoint['global_step']}", flush=True)


data = torch.utils.data.DataLoader(torch.randn(24, 8), batch_size=4)
checkpoint = ModelCheckpoint(
    chosen.out, "ckpt-{step}", every_n_train_steps=2, save_last=True, save_top_k=-1, auto_insert_metric_name=False
)
trainer = lightning.Trainer(
    max_steps=6,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[checkpoint],
    plugins=[AsyncCheckpointIO()] if chosen.asynchronous else None,
    default_root_dir=chosen.out,
)
model = Model()
trainer.fit(model, data, ckpt_path="last")
torch.save(model.state_dict(), f"{chosen.out}/final.pt")
