"""Columns of a table as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from floatgate._files import near

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class Columns:
    """Columns of a table as NumPy arrays: read-only, and without a copy where the memory allows it.

    Texts are objects. Missing values are NaN. Lists of equal length, such as shares by channel, are rows of a matrix.
    """

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    # Type checkers see the attributes that subclasses declare, and no others.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> npt.NDArray[Any]:
            table = object.__getattribute__(self, "_table") if not name.startswith("_") else None
            if table is None or name not in table.column_names:
                names = [] if table is None else table.column_names
                raise AttributeError(f"no column `{name}`{near(name, names)}")
            return _array(table[name], table.schema.field(name).nullable)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._table.column_names]

    def __repr__(self) -> str:
        return f"<floatgate.{type(self).__name__}: {len(self)} rows of {len(self._table.column_names)} columns>"


def _array(column: pa.ChunkedArray, nullable: bool) -> npt.NDArray[Any]:
    import numpy as np  # noqa: PLC0415 (not needed to import the package)
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    if pa.types.is_list(column.type):
        rows = column.combine_chunks()
        matrix: npt.NDArray[np.float64] = rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), -1)
        matrix.flags.writeable = False
        return matrix
    single = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    array: npt.NDArray[Any] = single.to_numpy(zero_copy_only=False)
    if nullable and array.dtype != object:
        # The type does not depend on whether a value is missing.
        array = array.astype(np.float64)
    array.flags.writeable = False
    return array
