"""Callbacks for a library that runs the training loop: the Trainer of `transformers`, and Lightning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformer.watching.watch import reason_of

if TYPE_CHECKING:
    from transformer.watching.watch import Watch


def trainer_callback(watch: Watch) -> Any:
    """A callback for the Trainer of the `transformers` library; only steps that it logs have a loss."""
    from transformers import TrainerCallback

    class Watching(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not control.should_log:
                watch.step(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in (logs or {}):
                watch.step(state.global_step, loss=float(logs["loss"]))

        def on_train_end(self, *_: Any, **__: Any) -> None:
            watch.close()

    return Watching()


def lightning_callback(watch: Watch) -> Any:
    """A callback for the Trainer of Lightning.

    The loss of a step is what `training_step` returns, or its item "loss", for the last batch of the step.
    """
    from lightning.pytorch import Callback

    class Watching(Callback):  # type: ignore[misc, unused-ignore]
        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if trainer.global_step > max(watch.last_step, 0):  # several batches may be one step
                whole = trainer.accumulate_grad_batches  # Lightning divides the loss by it
                watch.step(trainer.global_step, loss=None if loss is None else whole * float(loss))

        def on_train_end(self, *_: Any) -> None:
            watch.close()

        def on_exception(self, trainer: Any, module: Any, error: BaseException) -> None:
            watch.close(reason_of(error))

    return Watching()
