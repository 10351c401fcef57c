"""The messages of Chakra's execution traces as protobuf classes.

Written from MLCommons' public definition (package ChakraProtoMsg). What hccl-py neither reads nor
writes, tensors and details of storage, is left out: protobuf passes over what it does not know.

The classes are made when they are first asked for, in a pool of their own. In the common pool a
program that has Chakra's own package loaded would find every message twice, which protobuf refuses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hccl_interop.chakra.values import CommType, NodeType
from hccl_py.errors import ParameterError

_PACKAGE = "ChakraProtoMsg"

_SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)
"""What an attribute can hold, each alone and as a list: fields 3, 4, 5 and so on."""

_ENUMS = {"NodeType": NodeType, "CollectiveCommType": CommType}

_MESSAGES = {
    "GlobalMetadata": ("string version = 1", "repeated AttributeProto attr = 2"),
    "Node": (
        "uint64 id = 1",
        "string name = 2",
        "NodeType type = 3",
        "repeated uint64 ctrl_deps = 4",
        "repeated uint64 data_deps = 5",
        "uint64 start_time_micros = 6",
        "uint64 duration_micros = 7",
        "IOInfo inputs = 8",
        "IOInfo outputs = 9",
        "repeated AttributeProto attr = 10",
    ),
    "IOInfo": ("string values = 1", "string shapes = 2", "string types = 3"),
}


@cache
def messages() -> tuple[Any, Any]:
    """Return the classes GlobalMetadata and Node; ParameterError where the protobuf runtime is
    missing.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ParameterError(
            "Chakra traces need the package protobuf.", "pip install 'hccl-py[chakra]' brings it."
        ) from None
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, members in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for member in members:
            enum.value.add(name=member.name, number=member.value)
    for name, lines in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for line in lines:
            _add_field(message, line)
    attribute = file.message_type.add(name="AttributeProto")
    for line in ("string name = 1", "string doc_string = 2"):
        _add_field(attribute, line)
    attribute.oneof_decl.add(name="value")
    for number, scalar in enumerate(_SCALARS):
        plural = f"{scalar.capitalize()}List"
        _add_field(file.message_type.add(name=plural), f"repeated {scalar} values = 1")
        for line in (
            f"{scalar} {scalar}_val = {3 + 2 * number}",
            f"{plural} {scalar}_list = {4 + 2 * number}",
        ):
            _add_field(attribute, line).oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.GlobalMetadata")),
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Node")),
    )


def _add_field(message: Any, line: str) -> Any:
    """Add a field, written as in a schema file."""
    *repeated, kind, name, _, number = line.split()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
    else:
        field.type = field.TYPE_ENUM if kind in _ENUMS else field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    return field
