"""The arguments of librdkafka's calls for single messages, which alone take headers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from incsnap.kafka import librdkafka as c
from incsnap.kafka.outgoing_messages import SingleRecord

#: The arguments before the headers in each call for one record.
_VTYPES = (
    c.VTYPE_RKT,
    c.VTYPE_PARTITION,
    c.VTYPE_MSGFLAGS,
    c.VTYPE_TIMESTAMP,
    c.VTYPE_OPAQUE,
    c.VTYPE_KEY,
    c.VTYPE_VALUE,
)
_PARTITION, _TIMESTAMP, _OPAQUE, _KEY, _VALUE = (
    _VTYPES.index(each) for each in (c.VTYPE_PARTITION, c.VTYPE_TIMESTAMP, c.VTYPE_OPAQUE, c.VTYPE_KEY, c.VTYPE_VALUE)
)
#: One argument as 8-byte numbers: its kind, then the value, whose second number is the size of a text.
_WORDS = ctypes.sizeof(c.Argument) // 8
#: Calls whose arguments are made at once: a megabyte or two.
_AT_ONCE = 2_000


class CallsWithHeaders:
    """The calls for messages of one partition that share all headers.

    `template` are the arguments of such a call, as `arguments_of` makes them. `messages` is an array of
    `librdkafka.MESSAGE`. `times` has the messages' times in ms since 1970, as one number for all or one for each.
    """

    def __init__(self, template: Any, messages: Any, times: Any) -> None:
        self._template, self._messages, self._times = template, messages, np.broadcast_to(times, len(messages))
        self.arguments = len(template)  #: number of arguments of each call

    def addresses(self) -> Iterator[tuple[int, int]]:
        """Yield (index of the message, address of its arguments). An address is valid until the next one is taken."""
        template = np.frombuffer(self._template, np.int64)
        for begin in range(0, len(self._messages), _AT_ONCE):
            some = self._messages[begin : begin + _AT_ONCE]
            calls = np.tile(template, (len(some), 1)).reshape(len(some), self.arguments, _WORDS)
            calls[:, _PARTITION, 1] = some["partition"]
            calls[:, _TIMESTAMP, 1] = self._times[begin : begin + _AT_ONCE]
            calls[:, _OPAQUE, 1] = some["_private"]
            for place, pointer, size in ((_KEY, "key", "key_len"), (_VALUE, "payload", "len")):
                calls[:, place, 1], calls[:, place, 2] = some[pointer], some[size]
            first = calls.ctypes.data
            for number in range(len(some)):
                yield begin + number, first + number * calls.strides[0]

    def described(self, number: int) -> tuple[int, int, int, int]:
        """Return address and length of the key, length of the value, and the sender's number of a message."""
        message = self._messages[number]
        return int(message["key"]), int(message["key_len"]), int(message["len"]), int(message["_private"]) - 1


def arguments_of(handle: int, record: SingleRecord) -> Any:
    """Return the argument array for `rd_kafka_produceva`. It is valid as long as `record` is referenced."""
    arguments = (c.Argument * (len(_VTYPES) + len(record.headers)))()
    topic, partition, flags, timestamp, number, key, value, *headers = arguments
    for argument, kind in zip(arguments, _VTYPES, strict=False):
        argument.vtype = kind
    topic.u.rkt = handle
    partition.u.i32 = record.partition
    flags.u.i = c.MSG_F_COPY
    timestamp.u.i64 = record.timestamp
    number.u.ptr = record.number + 1
    for argument, content in ((key, record.key), (value, record.value)):
        argument.u.mem.ptr = content
        argument.u.mem.size = len(content or b"")
    for argument, (name, content) in zip(headers, record.headers, strict=True):
        argument.vtype = c.VTYPE_HEADER
        argument.u.header.name = name
        argument.u.header.val = content
        argument.u.header.size = len(content or b"")
    return arguments
