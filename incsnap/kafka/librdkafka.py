"""Bindings to the part of librdkafka's C interface that sends whole columns. Only incsnap's producer calls C.

confluent-kafka takes one Python call for each message: 100 to 140 ms for 100,000 messages of 780 bytes. The C function
`rd_kafka_produce_batch` takes an array of structures, which NumPy fills from Arrow's offsets in 5 ms. The call then
copies the bytes in 30 to 40 ms, without the GIL. The library is the one in confluent-kafka's package. So nothing more
is installed, and settings mean the same in both. Its C interface is stable:
https://github.com/confluentinc/librdkafka/blob/master/src/rdkafka.h
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import confluent_kafka.cimpl
import numpy as np

from incsnap.errors import ConfigError

#: Seconds to reach a first broker.
REACH_SECONDS = 3.0

PRODUCER = 0  # rd_kafka_type_t
MSG_F_COPY = 0x2
PURGE_F_QUEUE = 0x1  # purge messages that are not in flight
CONF_OK = 0  # rd_kafka_conf_res_t

# rd_kafka_vtype_t: the meaning of an element in the array for rd_kafka_produceva.
VTYPE_RKT, VTYPE_PARTITION, VTYPE_VALUE, VTYPE_KEY, VTYPE_OPAQUE, VTYPE_MSGFLAGS = 2, 3, 4, 5, 6, 7
VTYPE_TIMESTAMP, VTYPE_HEADER = 8, 9


class Message(ctypes.Structure):
    """The structure rd_kafka_message_t, as a callback receives it."""

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


#: The same structure as an element of an array that NumPy fills.
MESSAGE = np.dtype(Message)


class TopicPartition(ctypes.Structure):
    """The first fields of rd_kafka_topic_partition_t, as far as they are written."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
    )


class MetadataTopic(ctypes.Structure):
    """The structure rd_kafka_metadata_topic."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition_cnt", ctypes.c_int),
        ("partitions", ctypes.c_void_p),
        ("err", ctypes.c_int),
    )


class ClusterMetadata(ctypes.Structure):
    """The first fields of rd_kafka_metadata, as far as they are read."""

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
    """The structure rd_kafka_vu_t: one named argument of rd_kafka_produceva."""

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
    "rd_kafka_conf_set_oauthbearer_token_refresh_cb": (None, (_POINTER, _POINTER)),
    "rd_kafka_conf_enable_sasl_queue": (None, (_POINTER, _INT)),
    "rd_kafka_sasl_background_callbacks_enable": (_POINTER, (_POINTER,)),
    "rd_kafka_oauthbearer_set_token": (
        _INT,
        (_POINTER, _TEXT, ctypes.c_int64, _TEXT, _POINTER, ctypes.c_size_t, _TEXT, ctypes.c_size_t),
    ),
    "rd_kafka_oauthbearer_set_token_failure": (_INT, (_POINTER, _TEXT)),
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
    "rd_kafka_produceva": (_POINTER, (_POINTER, _POINTER, ctypes.c_size_t)),
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
    """Return a time-out in milliseconds as librdkafka's functions take it, at least 1."""
    return max(1, int(seconds * 1000))


@cache
def loaded_library() -> ctypes.CDLL:
    """Return librdkafka as confluent-kafka has loaded it, with the types of the functions set.

    Names are found because the loader also searches the dependencies of confluent-kafka's module. Raise ConfigError if
    this build of confluent-kafka hides the names of librdkafka.
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


def look_up(lib: Any, rk: int | None, topic: int | None, seconds: float = REACH_SECONDS) -> int:
    """Ask a broker for its cluster and, if `topic` (a topic handle) is given, for that topic. Wait at most `seconds`.

    The request also makes librdkafka connect to the broker and learn the topic's partitions. Return the topic's error
    as a code of `KafkaError`, or 0. A missing answer also gives 0: the next call reports that failure better.
    """
    metadata = ctypes.POINTER(ClusterMetadata)()
    if lib.rd_kafka_metadata(rk, 0, topic, ctypes.byref(metadata), milliseconds(seconds)):
        return 0
    try:
        cluster = metadata.contents
        return int(cluster.topics[0].err) if topic is not None and cluster.topic_cnt == 1 else 0
    finally:
        lib.rd_kafka_metadata_destroy(metadata)
