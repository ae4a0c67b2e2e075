# SPDX-License-Identifier: Apache-2.0
"""What rows hold: the fields are those of podsim.h, in its order, and called like the columns of --format csv."""

import dataclasses
from typing import Any, Dict, Generic, Iterator, List, Mapping, Optional, Type, TypeVar, overload


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of any command."""

    columns: Mapping[str, Any] = dataclasses.field(repr=False)  #: every column by name; None where a figure doesn't apply
    result: "Result[Any]" = dataclasses.field(repr=False, compare=False)  #: what the row is part of


@dataclasses.dataclass(frozen=True)
class Slice(Row):
    """A slice."""

    slice: str
    chip: str
    dims: str  #: "4x4x8"
    chips: int  #: of one slice
    hosts: int  #: virtual machines
    slices: int
    wrap: str  #: axes that close
    twisted: int
    links: int  #: cables
    diameter_hops: int
    mean_hops: float
    bisection_links: int
    bisection_GBps: float  #: one way


@dataclasses.dataclass(frozen=True)
class Collective(Row):
    """One algorithm at one size."""

    slice: str
    op: str
    axes: str
    group: int  #: chips in each group
    algorithm: str
    dtype: str
    bytes: int  #: the full buffer of a chip
    time_us: float
    algbw_GBps: float
    busbw_GBps: float
    bound_us: float  #: no algorithm is faster
    bound_frac: float
    limit: str
    data: str  #: "real" or "none"
    wrong: Optional[int]  #: elements; of real data


@dataclasses.dataclass(frozen=True)
class Step(Row):
    """A step under one layout."""

    slice: str
    model: str
    mesh: str
    dcn_mesh: Optional[str]  #: over slices
    placement: Optional[str]
    batch: Optional[int]
    seq: Optional[int]
    dtype: Optional[str]
    remat: Optional[str]
    mode: Optional[str]
    step_time_s: Optional[float]
    tokens_per_s_per_chip: Optional[float]
    model_tflops_per_chip: Optional[float]
    mfu_frac: Optional[float]
    compute_s: Optional[float]
    exposed_ici_s: Optional[float]
    exposed_dcn_s: Optional[float]
    exposed_host_s: Optional[float]
    idle_s: Optional[float]
    hbm_bytes_per_chip: Optional[float]
    hbm_frac: Optional[float]
    limit: Optional[str]
    rank: Optional[int]  #: of compare: 1 is the fastest
    status: Optional[str]  #: of compare: "ok", or why there is no time
    reason: Optional[str]  #: of compare: in words
    bound_s: Optional[float]  #: of compare: no step of this layout is faster


@dataclasses.dataclass(frozen=True)
class Plan(Row):
    """The best layout on one slice."""

    rank: Optional[int]
    slice: str
    chips: int
    mesh: Optional[str]
    dcn_mesh: Optional[str]
    remat: Optional[str]
    microbatches: Optional[int]
    batch: Optional[int]
    step_time_s: Optional[float]
    tokens_per_s: Optional[float]
    tokens_per_s_per_chip: Optional[float]
    mfu_frac: Optional[float]
    hbm_frac: Optional[float]
    cost_per_million_tokens: Optional[float]
    run_cost: Optional[float]
    days: Optional[float]
    limit: Optional[str]
    bound_s: Optional[float]
    candidates: Optional[int]  #: layouts that were looked at
    status: Optional[str]


@dataclasses.dataclass(frozen=True)
class Hlo(Row):
    """A compiled program."""

    slice: str
    module: str
    partitions: int
    step_time_s: float
    compute_s: float
    exposed_ici_s: float
    exposed_dcn_s: float
    exposed_hbm_s: float
    exposed_host_s: float
    idle_s: float
    compiler_s: Optional[float]  #: what XLA's own cost model says
    mxu_flops_per_chip: float
    mxu_frac: float
    hbm_read_bytes: float
    hbm_write_bytes: float
    hbm_bytes_per_chip: Optional[float]
    hbm_frac: Optional[float]
    unknown_calls: int  #: custom calls without a known time,
    unknown_s: float  #: and what they were taken to last
    instructions: int


R = TypeVar("R", bound=Row)


class Result(Generic[R]):
    """The rows of an answer, and what else it says. A sequence of its rows."""

    def __init__(self, document: Dict[str, Any], messages: str, kind: Type[R]):
        self.document = document  #: what --format json prints
        self.findings: List[Dict[str, Any]] = document.get("findings", [])  #: what tables say around their rows
        self.messages = messages  #: warnings, notes and explanations, a line each
        self.rows: List[R] = [self._row(kind, columns) for columns in document["rows"]]

    def _row(self, kind: Type[R], columns: Dict[str, Any]) -> R:
        given = {}
        for field in dataclasses.fields(kind)[2:]:
            value = columns.get(field.name)
            value = None if value == "-" else value  # as csv writes it
            given[field.name] = float(value) if isinstance(value, int) and "float" in str(field.type) else value
        return kind(columns=columns, result=self, **given)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> List[R]: ...

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Result({self.rows!r})"

    def frame(self) -> Any:
        """A pandas.DataFrame of every column. pandas must be installed."""
        import pandas  # type: ignore[import]

        return pandas.DataFrame([dict(row.columns) for row in self.rows])
