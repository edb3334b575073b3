"""Packets made by hand: encoders written from the formats' documentation. The product only decodes."""

from __future__ import annotations

from collections.abc import Sequence

_DIGIT_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]


def lenenc_integer(number: int) -> bytes:
    if number < 0xFB:
        return bytes([number])
    for marker, width in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if number < 1 << 8 * width:
            return bytes([marker]) + number.to_bytes(width, "little")
    raise ValueError(number)


def lenenc_string(value: bytes | None) -> bytes:
    return b"\xfb" if value is None else lenenc_integer(len(value)) + value


def packed_decimal(unscaled: int, precision: int, scale: int) -> bytes:
    """Return a DECIMAL as stored. It is encoded digit by digit, unlike in the decoder."""
    text = f"{abs(unscaled):0{precision}d}"
    whole, fraction = text[: precision - scale], text[precision - scale :]
    parts = []
    lead = len(whole) % 9
    parts += [whole[:lead]] + [whole[at : at + 9] for at in range(lead, len(whole), 9)]
    parts += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    raw = bytearray(b"".join(int(part).to_bytes(_DIGIT_BYTES[len(part)], "big") for part in parts if part))
    if unscaled < 0:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


def row_image(values: Sequence[bytes | None]) -> bytes:
    """Return the null bitmap and the stored values. Bits behind the last column are set, as by the server."""
    bits = sum(1 << index for index, value in enumerate(values) if value is None)
    size = (len(values) + 7) // 8
    bits |= (1 << 8 * size) - (1 << len(values))
    return bits.to_bytes(size, "little") + b"".join(value for value in values if value is not None)


def rows_event(
    columns: int, images: Sequence[bytes], *, update: bool = False, version: int = 2, table_id: int = 7
) -> bytes:
    """Return a rows event's body with all columns present."""
    extra = (5).to_bytes(2, "little") + b"abc" if version == 2 else b""
    present = ((1 << columns) - 1).to_bytes((columns + 7) // 8, "little")
    header = table_id.to_bytes(6, "little") + b"\x01\x00" + extra + lenenc_integer(columns)
    return header + present * (2 if update else 1) + b"".join(images)


def table_map(
    names: Sequence[str],
    codes: Sequence[int],
    meta: bytes,
    fields: Sequence[tuple[int, bytes]] = (),
    *,
    nullable: int = 0,
    table_id: int = 7,
) -> bytes:
    """Return a table map event's body for `shop.orders`. `fields` are further optional metadata as (kind, value)."""
    listed = b"".join(lenenc_string(name.encode()) for name in names)
    body = table_id.to_bytes(6, "little") + b"\x01\x00" + b"\x04shop\x00" + b"\x06orders\x00"
    body += lenenc_integer(len(codes)) + bytes(codes) + lenenc_string(meta)
    body += nullable.to_bytes((len(codes) + 7) // 8, "little")
    for kind, value in ([(4, listed)] if names else []) + list(fields):
        body += bytes([kind]) + lenenc_string(value)
    return body
