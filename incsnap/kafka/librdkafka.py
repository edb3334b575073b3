"""The part of librdkafka's C interface that writes whole columns; nothing else of incsnap calls C.

confluent-kafka wants a Python dictionary a message: 100,000 messages of 780 bytes cost it 100-140 ms. The C function
beneath it, ``rd_kafka_produce_batch``, takes an array of structures that NumPy fills from Arrow's offsets in 5 ms; the
call then copies the bytes: 30-40 ms, without the GIL. The library is the one that confluent-kafka brings along: there
is nothing more to install, and settings mean the same in both. Its C interface is stable:
https://github.com/confluentinc/librdkafka/blob/master/src/rdkafka.h
"""

from __future__ import annotations

import ctypes
from functools import cache

import confluent_kafka.cimpl
import numpy as np

from incsnap.errors import ConfigError

PRODUCER = 0  # rd_kafka_type_t
MSG_F_COPY = 0x2
PURGE_F_QUEUE = 0x1  # messages that are not in flight
CONF_OK = 0  # rd_kafka_conf_res_t

# rd_kafka_vtype_t: what an element of the array given to rd_kafka_produceva means.
VTYPE_RKT, VTYPE_PARTITION, VTYPE_VALUE, VTYPE_KEY, VTYPE_OPAQUE, VTYPE_MSGFLAGS = 2, 3, 4, 5, 6, 7
VTYPE_TIMESTAMP, VTYPE_HEADER = 8, 9

#: rd_kafka_message_t, as an array that NumPy fills.
MESSAGE = np.dtype(
    [
        ("err", "i4"),
        ("_pad0", "i4"),
        ("rkt", "u8"),
        ("partition", "i4"),
        ("_pad1", "i4"),
        ("payload", "u8"),
        ("len", "u8"),
        ("key", "u8"),
        ("key_len", "u8"),
        ("offset", "i8"),
        ("_private", "u8"),
    ]
)


class Message(ctypes.Structure):
    """The same structure, as a callback receives it."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("rkt", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("_private", ctypes.c_void_p),
    )


class TopicPartition(ctypes.Structure):
    """rd_kafka_topic_partition_t, as far as it is written to."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
    )


class MetadataTopic(ctypes.Structure):
    """rd_kafka_metadata_topic_t."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition_cnt", ctypes.c_int),
        ("partitions", ctypes.c_void_p),
        ("err", ctypes.c_int),
    )


class ClusterMetadata(ctypes.Structure):
    """rd_kafka_metadata_t, as far as it is read."""

    _fields_ = (
        ("broker_cnt", ctypes.c_int),
        ("brokers", ctypes.c_void_p),
        ("topic_cnt", ctypes.c_int),
        ("topics", ctypes.POINTER(MetadataTopic)),
    )


class _Bytes(ctypes.Structure):
    _fields_ = (("ptr", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("val", ctypes.c_char_p), ("size", ctypes.c_ssize_t))


class _Value(ctypes.Union):
    _fields_ = (
        ("rkt", ctypes.c_void_p),
        ("i", ctypes.c_int),
        ("i32", ctypes.c_int32),
        ("i64", ctypes.c_int64),
        ("ptr", ctypes.c_void_p),
        ("mem", _Bytes),
        ("header", _Header),
        ("_pad", ctypes.c_char * 64),
    )


class Argument(ctypes.Structure):
    """rd_kafka_vu_t: one named argument of rd_kafka_produceva."""

    _fields_ = (("vtype", ctypes.c_int), ("u", _Value))


#: void (*dr_msg_cb)(rd_kafka_t *, const rd_kafka_message_t *, void *opaque)
DELIVERY_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Message), ctypes.c_void_p)
#: void (*log_cb)(const rd_kafka_t *, int level, const char *kind, const char *line)
LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)

_POINTER, _TEXT, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "rd_kafka_conf_new": (_POINTER, ()),
    "rd_kafka_conf_destroy": (None, (_POINTER,)),
    "rd_kafka_conf_set": (_INT, (_POINTER, _TEXT, _TEXT, _TEXT, ctypes.c_size_t)),
    "rd_kafka_conf_set_dr_msg_cb": (None, (_POINTER, DELIVERY_CALLBACK)),
    "rd_kafka_conf_set_log_cb": (None, (_POINTER, LOG_CALLBACK)),
    "rd_kafka_new": (_POINTER, (_INT, _POINTER, _TEXT, ctypes.c_size_t)),
    "rd_kafka_destroy": (None, (_POINTER,)),
    "rd_kafka_poll": (_INT, (_POINTER, _INT)),
    "rd_kafka_flush": (_INT, (_POINTER, _INT)),
    "rd_kafka_purge": (_INT, (_POINTER, _INT)),
    "rd_kafka_outq_len": (_INT, (_POINTER,)),
    "rd_kafka_queue_new": (_POINTER, (_POINTER,)),
    "rd_kafka_queue_destroy": (None, (_POINTER,)),
    "rd_kafka_queue_poll_callback": (_INT, (_POINTER, _INT)),
    "rd_kafka_set_log_queue": (_INT, (_POINTER, _POINTER)),
    "rd_kafka_metadata": (
        _INT,
        (_POINTER, _INT, _POINTER, ctypes.POINTER(ctypes.POINTER(ClusterMetadata)), _INT),
    ),
    "rd_kafka_metadata_destroy": (None, (ctypes.POINTER(ClusterMetadata),)),
    "rd_kafka_topic_new": (_POINTER, (_POINTER, _TEXT, _POINTER)),
    "rd_kafka_topic_name": (_TEXT, (_POINTER,)),
    "rd_kafka_topic_destroy": (None, (_POINTER,)),
    "rd_kafka_produce_batch": (_INT, (_POINTER, ctypes.c_int32, _INT, _POINTER, _INT)),
    "rd_kafka_produceva": (_POINTER, (_POINTER, ctypes.POINTER(Argument), ctypes.c_size_t)),
    "rd_kafka_init_transactions": (_POINTER, (_POINTER, _INT)),
    "rd_kafka_begin_transaction": (_POINTER, (_POINTER,)),
    "rd_kafka_send_offsets_to_transaction": (_POINTER, (_POINTER, _POINTER, _POINTER, _INT)),
    "rd_kafka_commit_transaction": (_POINTER, (_POINTER, _INT)),
    "rd_kafka_abort_transaction": (_POINTER, (_POINTER, _INT)),
    "rd_kafka_topic_partition_list_new": (_POINTER, (_INT,)),
    "rd_kafka_topic_partition_list_add": (ctypes.POINTER(TopicPartition), (_POINTER, _TEXT, ctypes.c_int32)),
    "rd_kafka_topic_partition_list_destroy": (None, (_POINTER,)),
    "rd_kafka_consumer_group_metadata_new": (_POINTER, (_TEXT,)),
    "rd_kafka_consumer_group_metadata_destroy": (None, (_POINTER,)),
    "rd_kafka_fatal_error": (_INT, (_POINTER, _TEXT, ctypes.c_size_t)),
    "rd_kafka_err2str": (_TEXT, (_INT,)),
    "rd_kafka_error_code": (_INT, (_POINTER,)),
    "rd_kafka_error_string": (_TEXT, (_POINTER,)),
    "rd_kafka_error_is_fatal": (_INT, (_POINTER,)),
    "rd_kafka_error_is_retriable": (_INT, (_POINTER,)),
    "rd_kafka_error_txn_requires_abort": (_INT, (_POINTER,)),
    "rd_kafka_error_destroy": (None, (_POINTER,)),
}


def milliseconds(seconds: float) -> int:
    """A time-out as the functions take it, and never 0."""
    return max(1, int(seconds * 1000))


@cache
def loaded_library() -> ctypes.CDLL:
    """Gives librdkafka as confluent-kafka has loaded it: a name is looked up in a module's dependencies too.

    Raises ``ConfigError`` where confluent-kafka was linked with a librdkafka of hidden names.
    """
    loaded = ctypes.CDLL(confluent_kafka.cimpl.__file__)
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
    except AttributeError as problem:
        raise ConfigError(
            f"This build of confluent-kafka does not show librdkafka's functions: {problem}",
            "Install confluent-kafka from its wheel (pip install --only-binary :all: confluent-kafka).",
        ) from problem
    return loaded
