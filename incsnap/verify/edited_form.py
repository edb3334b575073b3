"""The members of unwrapped rows behind the columns, also where transforms edit the rows.

The table side edits its rows by the same transforms. So only the members must be told from columns whose values depend
on the record: they stand at the end, in a known order, and no edit touches them.
"""

from __future__ import annotations

from collections.abc import Sequence

from incsnap.envelope.edited_rows import whole_value
from incsnap.envelope.table_format import TableFormat
from incsnap.transforms.record_spec import Constant, EnvelopeField, Inserted, KeepFields, MaskFields, RecordSpec
from incsnap.transforms.record_spec import ValueShape as Shape

#: Types whose values Debezium's SELECT spells otherwise than its binlog reader. The comparison knows them by name.
_TWO_SPELLINGS = frozenset({"float", "double", "json"})


def added_members(format_: TableFormat, specs: Sequence[RecordSpec]) -> tuple[str, ...] | None:
    """Return the names of the members behind the columns; () for envelopes. Return None if verify cannot tell them.

    `specs`: those of a snapshot's rows, insertions and updates.
    """
    spec = specs[0]
    if any(each.key_edits or each.zones for each in specs) or {each.edits for each in specs} != {spec.edits}:
        return None
    inserted = [edit for edit in spec.edits if isinstance(edit, EnvelopeField | Constant | Inserted)]
    if spec.value is not Shape.ROW:
        # Fields that are inserted into an envelope stand behind its own.
        return () if len(inserted) == len(spec.edits) else None
    members = (*(each.name for each in spec.fields), *(each.name for each in inserted))
    if not spec.edits:
        return members
    columns = format_.view.fields
    for edit in spec.edits:
        if isinstance(edit, EnvelopeField | Constant | Inserted):
            continue
        if not isinstance(edit, MaskFields | KeepFields) or _touched(edit, members) & set(members):
            return None
        renames = isinstance(edit, KeepFields) and edit.renames
        if renames and any(field.column.type in _TWO_SPELLINGS for field in columns):
            return None
    names = [field.name for field in whole_value(format_.view, spec, spec.edits, format_.envelope.value_modes).fields]
    begin = len(names) - len(members)
    if tuple(names[begin:]) != members or set(names[:begin]) & set(members):
        return None
    return members


def _touched(edit: MaskFields | KeepFields, members: Sequence[str]) -> set[str]:
    """Return the names that an edit changes, drops or gives, among others those of `members` that it drops."""
    if isinstance(edit, MaskFields):
        return set(edit.fields)
    dropped = set(members) - set(edit.include) if edit.include else set()
    return dropped | set(edit.exclude) | {name for pair in edit.renames for name in pair}
