"""The rows of the table: what is raced, against whom, and what is aimed at."""
from dataclasses import dataclass, field

NIO = "nio"  # the faster of its two forms, see FORMS
TASKS = "tasks"
FLOOR = "floor"
C = "c"
UV = "uv"

# Contestants as the table calls them.
NAMES = {
    "ours": "ours",
    "nio": "SwiftNIO",
    "nio-isolated": "SwiftNIO, isolated",
    "tasks": "Swift Concurrency",
    "floor": "class + closure",
    "c": "C",
    "uv": "libuv",
}

# A peer that comes in several forms is represented in each row by the one that was fastest there in this run.
FORMS = {NIO: ("nio", "nio-isolated")}


@dataclass(frozen=True)
class Target:
    """At most `limit`: of `ratio` to a peer, or of our own `allocations`, `instructions`, `ns` a step."""
    what: str
    limit: float
    peer: str = ""


@dataclass(frozen=True)
class Row:
    key: str
    title: str
    steps: int = 1  # steps in a unit of work: what the figures are divided by
    peers: tuple = (NIO,)
    targets: tuple = ()
    count: int = 200  # units in a counted stretch
    alone: bool = False  # in processes of its own, since it leaves something behind that would show in other rows
    counted: bool = True  # whether instructions and allocations mean anything


def ratio(limit, peer):
    return Target("ratio", limit, peer)


ROWS = (
    Row("make-settle", "make a pending promise, fulfill it", 1, (NIO, TASKS, FLOOR), (Target("allocations", 1),)),
    Row("value", "make a fulfilled promise", 1, (NIO, FLOOR), (Target("allocations", 1),)),
    Row("map-pending-1", "map on a pending promise, chain of 1", 1, (NIO, TASKS, FLOOR)),
    Row("map-pending-10", "map on a pending promise, chain of 10, a hop", 10, (NIO, TASKS, FLOOR),
        (ratio(0.45, NIO), Target("allocations", 2.2), Target("instructions", 1050))),
    Row("map-pending-1000", "map on a pending promise, chain of 1000, a hop", 1000, (NIO, TASKS, FLOOR), count=5),
    Row("map-settled", "map on a fulfilled promise", 1, (NIO, TASKS, FLOOR), (ratio(0.6, NIO),)),
    Row("then-settled", "then, returning a settled promise", 1, (NIO, FLOOR), (ratio(0.5, NIO),)),
    Row("then-pending", "then, returning a pending promise", 1, (NIO,)),
    Row("reject-10", "rejection through 10 links to a catch", 1, (NIO, TASKS), (ratio(0.6, NIO),)),
    Row("when-10", "when of 10", 1, (NIO, TASKS)),
    Row("when-1000", "when of 1000", 1, (NIO, TASKS), (ratio(0.5, NIO),), count=5),
    Row("race-2", "race of 2", 1, (NIO, TASKS)),
    Row("race-10", "race of 10", 1, (NIO, TASKS)),
)
