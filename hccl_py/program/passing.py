"""Tuples of columns as arguments of compiled loops: by reference, a pointer each.

numba hands a tuple over by value, every array of it as seven numbers. A helper that takes three
tuples then has 500 arguments, of which it uses few, and most of the time to compile a loop went
into these. Here a tuple is laid out once, on the stack of the first call, and a field is loaded
where it is used. Imported where something compiles (kernels.py), as numba is slow to import.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_type_hints

from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)

_type_of_tuple = typeof_impl.dispatch(tuple)


class Reference(types.Type):  # type: ignore[misc]
    """The type of a pointer to a named tuple; `columns` is numba's type of the tuple."""

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        super().__init__(f"Reference({columns})")

    def type_of(self, name: str) -> Any:
        """Return the type of a field."""
        return self.columns.types[self.columns.fields.index(name)]


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: Reference) -> None:
        columns = manager.lookup(reference.columns).get_value_type()
        super().__init__(manager, reference, columns.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        return reference.type_of(name) if name in reference.columns.fields else None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def _load(context: Any, builder: Any, reference: Reference, pointer: Any, name: str) -> Any:
    place = cgutils.gep_inbounds(builder, pointer, 0, reference.columns.fields.index(name))
    return impl_ret_borrowed(context, builder, reference.type_of(name), builder.load(place))


@unbox(Reference)  # type: ignore[untyped-decorator]
def _lay_out(reference: Reference, columns: Any, call: Any) -> Any:
    native = call.unbox(reference.columns, columns)
    pointer = cgutils.alloca_once_value(call.builder, native.value)
    return NativeValue(pointer, is_error=native.is_error, cleanup=native.cleanup)


def pass_by_reference(hints: Iterable[object]) -> None:
    """Let compiled loops take the named tuples among some types, and those in them, by reference.

    A tuple in a tuple is a pointer, too, whichever loop compiles first: numba keeps machine code by
    the types of its arguments.
    """
    for kind in hints:
        if isinstance(kind, type) and hasattr(kind, "_fields"):
            typeof_impl.register(kind)(_type_of_columns)
            pass_by_reference(get_type_hints(kind).values())


def _type_of_columns(columns: object, context: object) -> Reference:
    return Reference(_type_of_tuple(columns, context))
