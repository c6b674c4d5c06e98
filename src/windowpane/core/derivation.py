"""How a stream's rows come from those that are given: conditions and computed columns, in this process."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.columns import without_views
from windowpane.values.errors import BadQuery

Types = tuple[tuple[str, pa.DataType], ...]
Columns = tuple[tuple[str, pc.Expression], ...]
Step: TypeAlias = pc.Expression | Columns
"""A condition, or columns by their names."""


@dataclass(frozen=True, eq=False)
class Derivation:
    """The columns of the rows as they are given, and the steps that make the stream's own of them."""

    types: Types
    steps: tuple[Step, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether both do the same; `==` of expressions is itself an expression."""
        if not isinstance(other, Derivation) or self.types != other.types:
            return False
        return len(self.steps) == len(other.steps) and all(map(_alike, self.steps, other.steps))

    def __hash__(self) -> int:
        """By the columns: equal ones have the same."""
        return hash((self.types, len(self.steps)))

    def then(self, step: Step) -> tuple[Derivation, Types]:
        """With one more step, and the columns that come out; an error if it cannot be computed."""
        longer = replace(self, steps=(*self.steps, step))
        try:
            made = _made(pa.schema(list(self.types)).empty_table(), longer.steps)
        except pa.ArrowException as error:
            raise BadQuery(f"{_told(step)}: {_first_line(error)}. Use columns that it can take.") from error
        return longer, tuple((field.name, field.type) for field in without_views(made.schema))

    def rows(self, given: pa.RecordBatch, schema: pa.Schema, stream: str) -> pa.RecordBatch:
        """The stream's rows that a batch gives, in its order; `given` has the columns `types`."""
        try:
            made = _made(pa.Table.from_batches([given]), self.steps)
            whole = [
                column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
                for column in (made if made.num_rows else made.schema.empty_table()).columns
            ]
        except pa.ArrowException as error:
            failed = ", ".join(_told(step) for step in self.steps)
            remedy = "Mend the rows, or leave those out before that it cannot take."
            raise BadQuery(
                f"{failed} failed for a row of {stream}: {_first_line(error)}. {remedy}"
            ) from error
        batch = pa.RecordBatch.from_arrays(whole, names=made.schema.names)
        return batch if batch.schema.equals(schema) else batch.cast(schema)


def text_of(expression: pc.Expression) -> str:
    """An expression as text, the same in every process; with a digest where the text leaves something out.

    Numbers are as they print, so that 2 and 2.0 are one.
    """
    text = " ".join(str(expression).split())
    if "..." not in text and text == str(expression):
        return text
    return f"{text} (digest {hashlib.sha256(pickle.dumps(expression, protocol=5)).hexdigest()[:16]})"


def _made(table: pa.Table, steps: tuple[Step, ...]) -> pa.Table:
    """The rows after all steps; in one thread, so that they stay in their order."""
    # loads pandas, which takes a second and 46 MB: only where it is used
    from pyarrow import acero  # noqa: PLC0415

    plan = [acero.Declaration("table_source", acero.TableSourceNodeOptions(table))]
    for step in steps:
        if isinstance(step, pc.Expression):
            plan.append(acero.Declaration("filter", acero.FilterNodeOptions(step)))
        else:
            names, expressions = [name for name, _ in step], [expression for _, expression in step]
            plan.append(acero.Declaration("project", acero.ProjectNodeOptions(expressions, names)))
    return acero.Declaration.from_sequence(plan).to_table(use_threads=False)


def _alike(one: Step, other: Step) -> bool:
    if isinstance(one, pc.Expression) or isinstance(other, pc.Expression):
        return isinstance(one, pc.Expression) and isinstance(other, pc.Expression) and one.equals(other)
    if [name for name, _ in one] != [name for name, _ in other]:
        return False
    return all(a.equals(b) for (_, a), (_, b) in zip(one, other, strict=True))


def _told(step: Step) -> str:
    """A step as the call that made it."""
    if isinstance(step, pc.Expression):
        return f"where({text_of(step)})"
    return f"select({', '.join(f'{name}={text_of(expression)}' for name, expression in step)})"


def _first_line(error: pa.ArrowException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
