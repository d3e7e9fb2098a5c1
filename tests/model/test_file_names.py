"""Names are bytes: any name becomes text that every format can hold, and the same name again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosckpt.model.file_names import bytes_of, printable, text_of


@given(st.binary(max_size=40))
def test_any_name_survives_as_text(name: bytes) -> None:
    """Through JSON and MessagePack, which hold no half characters."""
    text = text_of(name)
    assert bytes_of(text) == name
    assert msgspec.json.decode(msgspec.json.encode(text)) == text
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(text)) == text


@given(st.binary(max_size=3), st.binary(max_size=3))
def test_no_two_names_become_one_text(one: bytes, other: bytes) -> None:
    """Not even those that hold characters of the private range themselves."""
    assert (text_of(one) == text_of(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"caf\xe9", r"caf\xe9"), ("café".encode(), "café"), ("\uf7e9".encode(), "\uf7e9"), (b"a\nb", "a\nb")],
)
def test_what_a_person_reads(name: bytes, shown: str) -> None:
    """Bytes that are no UTF-8 as escapes, all else as it is."""
    assert printable(text_of(name)) == shown
