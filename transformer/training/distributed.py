"""One training spread over several processes, each with the whole model and a share of every batch.

PyTorch's launcher starts them, on one machine or on several (`torchrun --nproc-per-node 2 -m transformer
train`). Process 0 leads: only it evaluates, records, writes and decides; the others take the steps
that it announces. DistributedDataParallel averages the gradients ("PyTorch Distributed", Li et al.,
2020).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.training.device import resolve_device


@dataclass(frozen=True, kw_only=True)
class Distributed:
    """The place of this process among those that train one model together."""

    rank: int
    """From 0 up; process 0 leads."""
    n_processes: int
    device: torch.device
    """The device of this process."""

    @classmethod
    def join(
        cls, config: RunConfig, rank: int, n_processes: int, local_rank: int, n_here: int
    ) -> Distributed:
        """Join the process group; return when all processes have joined.

        Args:
            rank: number of this process among all, from 0 up.
            local_rank: its number on this machine, from 0 up.
            n_here: processes on this machine.

        Raises:
            InputError: a batch with fewer examples than processes; a device that this machine does not have
                or that processes cannot share; or fewer GPUs than processes on this machine.
        """
        if config.train.batch_size < n_processes:
            raise InputError(
                f"A batch of {config.train.batch_size} cannot be spread over {n_processes} processes; choose "
                f"a batch_size of at least {n_processes}, or start fewer processes.",
                "batch_size",
            )
        device = _device(config.device, local_rank, n_here)
        # With GPUs too, announcements are CPU tensors and go through gloo: no wait for the GPU.
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        return cls(rank=rank, n_processes=n_processes, device=device)

    @property
    def leads(self) -> bool:
        """Whether this process leads the others."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap the model for training: its gradients become the mean over all processes."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)  # for this thread, the one that trains
        return DistributedDataParallel(model, forward_sync_buffers=False)  # no buffer ever changes

    def share(
        self, src: Tensor, tgt_in: Tensor, labels: Tensor, pad_id: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """This process's rows of a batch, with the padding of the whole batch.

        The last batch of an epoch may have fewer rows than there are processes. A process without a row takes
        the first one, without labels, because all must take part in every step.

        Args:
            src: (B, S).
            tgt_in: (B, T).
            labels: (B, T).
            pad_id: the label of positions without loss.
        """
        if self.rank >= len(src):
            return src[:1], tgt_in[:1], torch.full_like(labels[:1], pad_id)
        mine = slice(self.rank, None, self.n_processes)
        return src[mine], tgt_in[mine], labels[mine]

    def backward(self, part: Tensor) -> None:
        """Give every process the gradients of the whole batch's loss, the sum of all processes' parts."""
        (part * self.n_processes).backward()  # because the wrapper takes the mean

    def add_up(self, numbers: Tensor) -> None:
        """Replace numbers, in place, by their sums over all processes."""
        dist.all_reduce(numbers)

    def announce_step(self) -> None:
        """Tell the other processes to take a step; called by the leader."""
        dist.broadcast(torch.tensor(1), src=0)

    def announce_end(self) -> None:
        """Tell the other processes that training has ended; called by the leader."""
        with contextlib.suppress(RuntimeError):  # the others may have ended already
            dist.broadcast(torch.tensor(0), src=0)

    def wait_for_announcement(self) -> bool:
        """Wait for the leader's announcement; return whether there is another step."""
        word = torch.tensor(0)
        dist.broadcast(word, src=0)
        return bool(word)

    def leave(self) -> None:
        """Leave the process group after the end."""
        dist.destroy_process_group()


def _device(name: str, local_rank: int, n_here: int) -> torch.device:
    """The device of one process: the CPU, which all share, or a GPU of its own. Raises InputError."""
    if name == "auto" and not torch.cuda.is_available():
        name = "cpu"
    kind = resolve_device(name).type
    if kind == "cpu":
        return torch.device("cpu")
    if kind != "cuda":
        raise InputError(f"Several processes cannot share {kind}; choose the device cpu.", "device")
    n_gpus = torch.cuda.device_count()
    if n_here > n_gpus:
        raise InputError(
            f"{n_here} processes need a GPU each, and this machine has {n_gpus}; start at most that many "
            "(--nproc-per-node), or choose the device cpu.",
            "device",
        )
    return torch.device("cuda", local_rank)
