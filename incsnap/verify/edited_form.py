"""The members of unwrapped rows that are no columns, also where transforms edit the rows.

The table side edits its rows by the same transforms. So only the members must be told whose values depend on the
record. `rows_as_edited` follows their names through the edits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from incsnap.envelope.edited_rows import whole_value
from incsnap.envelope.table_format import TableFormat
from incsnap.transforms.record_spec import (
    CastFields,
    Constant,
    ConvertTimestamp,
    EnvelopeField,
    ExtractField,
    FlattenFields,
    HoistField,
    Inserted,
    KeepFields,
    MaskFields,
    RecordSpec,
)
from incsnap.transforms.record_spec import ValueShape as Shape

#: Types whose values Debezium's SELECT spells otherwise than its binlog reader. The comparison knows them by name.
_TWO_SPELLINGS = frozenset({"float", "double", "json"})
_DELETED = "__deleted"


class NotRepeatable(Exception):
    """An error: verify cannot repeat what transforms do with records. Its text says which ones."""


@dataclass(frozen=True, slots=True)
class EditedRows:
    """The rows of records behind the edits."""

    added: tuple[str, ...] = ()  #: names of the members that are no columns, in their order
    at_end: bool = True  #: the members stand behind the columns, as the transforms have made them
    hoists: tuple[str, ...] = ()  #: fields that contain the row, the outermost first
    deleted: str = ""  #: name of the member that marks deletions; "" for none


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a row while the edits pass."""

    name: str  #: name of the field now
    column: str = ""  #: type of its column; "" for a member
    marks: bool = False  #: it marks deletions
    cast: bool = False  #: its type is another one
    replaced: bool = False  #: its value is another one


def rows_as_edited(format_: TableFormat, specs: Sequence[RecordSpec]) -> EditedRows:
    """Return what edits make of the rows; an empty description for envelopes.

    `specs`: those of a snapshot's rows, insertions and updates. Raise NotRepeatable if verify cannot repeat the edits.
    """
    spec = specs[0]
    if any(each.key_edits for each in specs):
        raise NotRepeatable("transforms edit its keys, so rows cannot be found by the keys of records")
    if len({(each.edits, each.fields, each.zones) for each in specs}) > 1:
        raise NotRepeatable("transforms edit rows of snapshots, insertions and updates in different ways")
    if spec.value is not Shape.ROW:
        # Fields that are inserted into an envelope stand behind its own.
        if any(not isinstance(edit, EnvelopeField | Constant | Inserted) for edit in spec.edits):
            raise NotRepeatable("transforms edit its envelopes")
        return EditedRows()
    if not spec.edits:
        marks = _DELETED if any(each.name == _DELETED for each in spec.fields) else ""
        return EditedRows(tuple(each.name for each in spec.fields), deleted=marks)
    columns = [_Field(field.name, field.column.type) for field in format_.view.fields]
    fields = [*columns, *(_Field(each.name, marks=each.name == _DELETED) for each in spec.fields)]
    hoists: list[str] = []
    for edit in spec.edits:
        fields = _edited(fields, hoists, edit)
    mark = next((field for field in fields if field.marks), None)
    if mark is None and any(each.name == _DELETED for each in spec.fields):
        raise NotRepeatable(f"transforms drop {_DELETED}, which marks deletions")
    if mark is not None and mark.replaced:
        raise NotRepeatable(f"transforms change {_DELETED}, which marks deletions")
    deleted = "" if mark is None else mark.name
    members = tuple(field.name for field in fields if not field.column)
    if hoists:
        return EditedRows(members, False, tuple(reversed(hoists)), deleted)
    whole = whole_value(format_.view, spec, spec.edits, format_.envelope.value_modes)
    names = tuple(field.name for field in whole.fields)
    is_plain = mark is None or (mark.name == _DELETED and not mark.cast)
    at_end = is_plain and names[len(names) - len(members) :] == members
    return EditedRows(members, at_end, (), deleted)


def _edited(fields: list[_Field], hoists: list[str], edit: object) -> list[_Field]:
    """Return the fields behind an edit. A field that contains the row is added to `hoists`, the innermost first."""
    if hoists and not isinstance(edit, HoistField):
        raise NotRepeatable("a transform edits rows behind a HoistField; let the HoistField be the last of them")
    match edit:
        case EnvelopeField() | Constant() | Inserted():
            return [*fields, _Field(edit.name)]
        case KeepFields():
            renames = dict(edit.renames)
            kept = [
                field
                for field in fields
                if field.name not in edit.exclude and (not edit.include or field.name in edit.include)
            ]
            _refuse_spellings([field for field in kept if field.name in renames], "renames")
            return [replace(field, name=renames.get(field.name, field.name)) for field in kept]
        case MaskFields():
            names = edit.fields
        case CastFields():
            names = tuple(name for name, _ in edit.types)
            _refuse_spellings([field for field in fields if field.name in names], "casts")
        case ConvertTimestamp():
            names = (edit.field,)
        case HoistField():
            hoists.append(edit.field)
            return fields
        case FlattenFields():
            # Only geometries are structs in a row. Their fields are none of the members.
            return fields
        case ExtractField():
            raise NotRepeatable(f"a transform puts the field {edit.field} in the place of the row")
        case _:
            raise NotRepeatable("transforms edit its rows")
    is_cast = isinstance(edit, CastFields)
    return [
        replace(field, cast=field.cast or is_cast, replaced=field.replaced or not is_cast)
        if field.name in names
        else field
        for field in fields
    ]


def _refuse_spellings(fields: Sequence[_Field], what: str) -> None:
    odd = [field for field in fields if field.column in _TWO_SPELLINGS]
    if odd:
        raise NotRepeatable(
            f"a transform {what} {odd[0].name} of the type {odd[0].column}, which Debezium's snapshots spell otherwise"
        )
