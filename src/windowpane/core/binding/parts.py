"""What binding an aggregate gives."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from windowpane.core.lowering import Lower
from windowpane.core.partials.base import Partial
from windowpane.values.aggregates import Aggregate

Types = dict[str, pa.DataType]
"""The types of the values (see `column_types.plain_type`)."""
Parts = tuple[tuple[Partial, ...], pa.DataType, Lower]
Binder = Callable[[Aggregate, Types], Parts]
