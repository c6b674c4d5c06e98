"""Files that know their columns: one that lacks a column that a query reads stops the job.

Spark makes nulls of it in every row. So the footers of files are looked at on the driver, each once, before
answers that may come from them are published. Files of other file systems than this machine's are not.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
from pyarrow import orc, parquet

from windowpane.jobs.columns import Path as Column
from windowpane.jobs.columns import Tree, lacking, tree_of
from windowpane.jobs.job import Source
from windowpane.values.errors import BadQuery
from windowpane.values.paths import local_path

_HIVES = re.compile(r"_col\d+")
"""Names that Hive gave the columns of old ORC files, which Spark takes by their places."""
_BY_AGE = {"modifiedbefore", "modifiedafter"}
"""Options that leave files out by their age, which only Spark can tell."""


@dataclass
class Footers:
    """The files of a source, and which of them were looked at."""

    form: str
    path: str
    columns: Sequence[Column]
    options: Mapping[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _unread: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    _one: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, source: Source, columns: Sequence[Column]) -> Footers | None:
        """What looks at the files of a source; None where there is nothing to look at."""
        path = None if source.path is None else local_path(source.path)
        options = {name.lower(): value for name, value in source.options.items()}
        if not source.of_files or source.malformed == "keep" or path is None or _BY_AGE & set(options):
            return None
        return cls(source.format, str(path), columns, options)

    def check(self) -> None:
        """Look at files that were not looked at; an error names the first that lacks a column."""
        with self._one:  # queries that run side by side share it
            self._look(self._files())

    def check_again(self) -> None:
        """Look once more at files that could not be read: one that was being written may be whole now."""
        with self._one:
            self._look(self._unread)

    def _look(self, files: Iterable[tuple[str, Sequence[str]]]) -> None:
        unread = []
        for file, named in files:
            if file not in self._seen and not self._fits(file, named):
                unread.append((file, named))
            else:
                self._seen.add(file)
        self._unread = unread

    def _fits(self, file: str, named: Sequence[str]) -> bool:
        """Whether the file has all columns; False where it cannot be read, which Spark tells if it tries."""
        try:
            tree: Tree = {**tree_of(self._schema(file)), **{name: {} for name in named}}
        except (OSError, pa.ArrowException):
            return False
        gone = lacking(self.columns, tree)
        if gone is None or all(_HIVES.fullmatch(name) for name in tree):
            return True
        raise BadQuery(
            f"the file {file!r} has no column {'.'.join(gone)!r}, which a query reads: it would be null in "
            "all rows of the file. Write it anew with that column, or write malformed: keep in the source."
        )

    def _schema(self, file: str) -> pa.Schema:
        return parquet.read_schema(file) if self.form == "parquet" else orc.ORCFile(file).schema

    def _files(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The files that Spark reads, each with the columns that its directories name."""
        deep = self.options.get("recursivefilelookup", "").lower() == "true"
        base = local_path(self.options["basepath"]) if "basepath" in self.options else None
        for root in self._roots():
            if Path(root).is_file():
                yield root, _named(Path(root).parent, base) if base else ()
            for folder, folders, files in os.walk(root, followlinks=True):
                below = deep or folder != root  # of a directory that names a column all is read
                folders[:] = [name for name in folders if not _hidden(name) and (below or "=" in name)]
                named = () if deep else _named(Path(folder), base or Path(root))
                for name in files:
                    if not _hidden(name) and self._wanted(name):
                        yield str(Path(folder) / name), named

    def _roots(self) -> list[str]:
        """The directories (or files) that the path stands for."""
        patterns = [path.replace("[^", "[!") for path in _either(self.path.lstrip("/"))]
        found = [one for path in patterns for one in Path("/").glob(path)]
        return [str(one) for one in found if one.is_dir() or not _hidden(one.name)]

    def _wanted(self, name: str) -> bool:
        pattern = self.options.get("pathglobfilter")
        return pattern is None or any(fnmatchcase(name, one.replace("[^", "[!")) for one in _either(pattern))


def _hidden(name: str) -> bool:
    """Whether Spark passes over files and directories of this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _named(folder: Path, base: Path) -> list[str]:
    """The columns that directories below a base have in their names."""
    parts = folder.relative_to(base).parts if folder.is_relative_to(base) else ()
    return [part.partition("=")[0] for part in parts if "=" in part]


def _either(pattern: str) -> list[str]:
    """The patterns that one with alternatives such as {a,b} stands for."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [one for word in found[1].split(",") for one in _either(before + word + after)]
