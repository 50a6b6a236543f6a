"""A run file with damaged bytes opens as a finished run or is refused, and nothing is left behind."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing import profile
from transformer.errors import InputError
from transformer.storage.library import Library

DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "put", "take"]), st.floats(0, 1), st.binary(min_size=1, max_size=40)
    ),
    min_size=1,
    max_size=4,
)
"""The kind of damage, its relative position in the file, and the bytes to use."""


@pytest.mark.timeout(3600)
@profile(60)
@given(DAMAGES)
def test_a_damaged_file_opens_as_a_finished_run_or_is_refused(bundles, tmp_path, damages):
    damaged = bytearray(bundles[0])
    for damage, part, some in damages:
        at = int(part * len(damaged))
        match damage:
            case "flip":
                damaged[at : at + 1] = bytes(byte ^ 1 << some[0] % 8 for byte in damaged[at : at + 1])
            case "cut":
                del damaged[at:]
            case "put":
                damaged[at:at] = some
            case "take":
                del damaged[at : at + 10 * len(some)]
    library, id_ = Library(tmp_path / "runs"), None
    with suppress(InputError):
        id_ = library.open_file(bytes(damaged), "a digest", 1, lambda saved: None)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert [path.name for path in library.folder.iterdir()] == ([] if id_ is None else [id_])
    if id_ is not None:
        assert library.facts_of_run(id_).state == "finished"
        shutil.rmtree(library.folder / id_)
