"""The writer of serialised Java objects. Java 17 has written the texts of this file, or has read what is compared."""

from __future__ import annotations

from incsnap.kafka.java_objects import read_object
from incsnap.takeover.java_writing import write_key, write_map

#: `new Object[]{5L, 7L, "ü", "x", -1L}` as Java writes it.
_KEY = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870000000057372000e6a61"
    "76612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176612e6c616e672e4e756d6265"
    "7286ac951d0b94e08b020000787000000000000000057371007e00020000000000000007740002c3bc740001787371007e00"
    "02ffffffffffffffff"
)
#: `new Object[]{"😀a\0", 1L}` as Java writes it, with the emoji as two surrogates.
_BEYOND = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000002740009eda0bd"
    "edb88061c0807372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176"
    "612e6c616e672e4e756d62657286ac951d0b94e08b02000078700000000000000001"
)
#: The beginning of an array of 11,000 emojis and a Long, as Java writes it.
_LONG = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870000000027c00000000000101d0eda0bd"
)


def test_a_key_is_written_as_java_writes_it() -> None:
    assert write_key([5, 7, "ü", "x", -1]).hex() == _KEY


def test_a_text_is_written_in_javas_form_of_utf_8() -> None:
    assert write_key(["\U0001f600a\0", 1]).hex() == _BEYOND

    long: list[int | str] = ["\U0001f600" * 11_000, 2]
    assert write_key(long).hex().startswith(_LONG)
    assert read_object(write_key(long)) == long


def test_a_map_is_read_as_it_was_written() -> None:
    entries = {b"a": b"1", b"b": None, b"c": b"", b"": b"\xff"}

    assert read_object(write_map(entries)) == entries
    assert read_object(write_map({})) == {}


def test_a_map_of_many_offsets_has_room_for_them() -> None:
    entries: dict[bytes, bytes | None] = {f"connector-{number}".encode(): b"{}" for number in range(500)}

    assert read_object(write_map(entries)) == entries
