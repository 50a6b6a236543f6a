"""Replaying a whole training step as one CUDA graph, which launches all of its kernels in one call.

A step of a small model is several hundred kernels of a few microseconds each; launching a kernel takes
longer than running it (NVIDIA, "Getting Started with CUDA Graphs", 2019).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Step = Callable[..., Tensor]
Replay = Callable[[], Tensor]
Capture = Callable[[Callable[[], Tensor]], Replay]

EAGER_FIRST = 3
"""Number of eager steps of each shape before its graph is captured: in them, libraries choose their kernels
and the optimiser creates its running averages."""
MAX_GRAPHS = 8
"""Maximum number of shapes for which a capture is tried; each graph keeps the activations of a step."""


class Graphs:
    """The graphs of one training, by the shapes of the batch.

    Args:
        capture: turns a function without arguments into one that replays it, as `cuda_capture` does.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._seen: dict[tuple[torch.Size, ...], int] = {}
        self._captured: dict[tuple[torch.Size, ...], Step | None] = {}

    def run(self, step: Step, tensors: tuple[Tensor, ...]) -> Tensor:
        """Run the step on these tensors; replay its graph where one is captured.

        Args:
            step: reads its arguments and tensors that stay in place; never a value on the host that changes
                from step to step.
            tensors: the batch, on the device.

        Returns:
            The result of the step, as a new tensor.
        """
        key = tuple(tensor.shape for tensor in tensors)
        self._seen[key] = self._seen.get(key, 0) + 1
        if key not in self._captured:
            if self._seen[key] <= EAGER_FIRST or len(self._captured) >= MAX_GRAPHS:
                return step(*tensors)
            self._captured[key] = self._try(step, tensors)
        return (self._captured[key] or step)(*tensors)

    def forget(self) -> None:
        """Release all graphs, because the model computes something else from now on."""
        self._seen.clear()
        self._captured.clear()

    def _try(self, step: Step, tensors: tuple[Tensor, ...]) -> Step | None:
        """Capture a step without performing it; None where something in it cannot be captured."""
        inputs = tuple(tensor.clone() for tensor in tensors)  # a replay reads its batch from these
        try:
            replay = self._capture(lambda: step(*inputs))
        except RuntimeError:
            return None

        def replayed(*batch: Tensor) -> Tensor:
            for place, tensor in zip(inputs, batch, strict=True):
                place.copy_(tensor)
            return replay().clone()

        return replayed


def cuda_capture(*generators: torch.Generator) -> Capture:
    """Capture as CUDA graphs; these generators continue their random streams in the replays."""

    def capture(step: Callable[[], Tensor]) -> Replay:
        graph = torch.cuda.CUDAGraph()
        for generator in generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads use the GPU too
            result = step()

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    return capture
