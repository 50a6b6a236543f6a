"""Devices: the preferred one of the machine, or a clear refusal."""

from __future__ import annotations

import pytest

from transformer.errors import InputError
from transformer.training import device


@pytest.mark.parametrize(
    ("present", "chosen"), [(("cpu",), "cpu"), (("cuda", "cpu"), "cuda"), (("mps", "cpu"), "mps")]
)
def test_auto_is_the_preferred_device_of_the_machine(monkeypatch, present, chosen):
    monkeypatch.setattr(device, "available_devices", lambda: present)
    assert device.resolve_device("auto").type == chosen
    assert device.resolve_device("cpu").type == "cpu"


def test_a_missing_device_is_refused_with_a_list_of_the_available_ones(monkeypatch):
    monkeypatch.setattr(device, "available_devices", lambda: ("mps", "cpu"))
    with pytest.raises(InputError, match="no cuda device; it has mps, cpu. Choose auto") as refused:
        device.resolve_device("cuda")
    assert refused.value.field == "device"


def test_devices_are_listed_by_preference(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert device.available_devices() == ("cuda", "mps", "cpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert device.available_devices() == ("cpu",)
