"""The rows of the table: the workloads, the peers, and the targets."""
from dataclasses import dataclass, field

NIO = "nio"  # the faster of its two forms, see FORMS
TASKS = "tasks"
FLOOR = "floor"
UNNESTED = "ours-unnested"
C = "c"
C_READS = "c-reads"
UV = "uv"

# Contestants as the table calls them.
NAMES = {
    "ours": "ours",
    "nio": "SwiftNIO",
    "nio-isolated": "SwiftNIO, isolated",
    "tasks": "Swift Concurrency",
    "floor": "class + closure",
    "ours-unnested": "queueing alone",
    "c": "C",
    "c-reads": "C, reading the eventfd",
    "uv": "libuv",
}

# A peer with several forms is represented in each row by the fastest one of this run.
FORMS = {NIO: ("nio", "nio-isolated")}


@dataclass(frozen=True)
class Target:
    """At most `limit`: of `ratio` to a peer, or of one of our own figures: `ns`, `allocations`, `instructions`,
    `system_calls` a step; `growth_kib`, by which a long stretch's peak memory is above a short one's."""
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
    names: dict = field(default_factory=dict)  # of contestants that are something else here than NAMES says
    long: int = 0  # units of a stretch for memory, time as well if it is so long; its tenth is the short one


def ratio(limit, peer):
    return Target("ratio", limit, peer)


def allocations(limit):
    return Target("allocations", limit)


ROWS = (
    Row("make-settle", "make a pending promise, fulfill it", 1, (NIO, TASKS, FLOOR), (allocations(1),)),
    Row("make-keep-settle", "make and fulfill, the resolver kept elsewhere", 1, (NIO,), (allocations(1),)),
    Row("value", "make a fulfilled promise", 1, (NIO, FLOOR), (allocations(1),)),
    Row("map-pending-1", "map on a pending promise, chain of 1", 1, (NIO, TASKS, FLOOR)),
    Row("map-pending-10", "map on a pending promise, chain of 10, per hop", 10, (NIO, TASKS, FLOOR),
        (ratio(0.45, NIO), allocations(2.2), Target("instructions", 1050))),
    Row("map-pending-1000", "map on a pending promise, chain of 1000, per hop", 1000, (NIO, TASKS, FLOOR), count=5),
    Row("map-settled", "map on a fulfilled promise", 1, (NIO, TASKS, FLOOR), (ratio(0.6, NIO),)),
    Row("map-settled-100", "map on a fulfilled promise, one hang for a hundred, each", 100, (NIO,), count=20),
    Row("then-settled", "then, returning a settled promise", 1, (NIO, FLOOR), (ratio(0.5, NIO),)),
    Row("then-settled-100", "then with a settled promise, one hang for a hundred, each", 100, (NIO,), count=20),
    Row("then-pending", "then, returning a pending promise", 1, (NIO,)),
    Row("reject-10", "rejection through 10 links to a catch", 1, (NIO, TASKS), (ratio(0.6, NIO),)),
    Row("when-10", "when of 10, per promise", 10, (NIO, TASKS)),
    Row("when-1000", "when of 1000, per promise", 1000, (NIO, TASKS), (ratio(0.5, NIO),), count=5),
    Row("race-2", "race of 2", 1, (NIO, TASKS)),
    Row("race-10", "race of 10", 1, (NIO, TASKS)),
    Row("hang-settled", "hang on a settled promise", 1, (FLOOR, C),
        (Target("ns", 30), allocations(0), Target("system_calls", 0)), count=2000,
        names={"floor": "a call, in Swift", "c": "a call, in C"}),
    Row("hang-timer", "hang on a timer that is due", 1, (NIO, TASKS, UV)),
    Row("timer-0", "start a timer, cancel it", 1, (NIO, TASKS, UV)),
    Row("timer-200000", "start and cancel a timer, 200,000 outstanding", 1, (NIO, UV), (ratio(0.01, NIO), ratio(1.5, UV)),
        count=50, alone=True),
    Row("hop", "to another thread and back, one processor", 1, (NIO, C, C_READS), (ratio(1.10, C),),
        alone=True),
    Row("hop-handlers", "to another thread and back, with handlers instead of hang", 1, (NIO, C, C_READS), alone=True),
    Row("recursion", "recursion through then, per step", 1, (UNNESTED,),
        (Target("ns", 250), ratio(1.2, UNNESTED), Target("growth_kib", 1024)), count=2000, long=10_000_000),
    Row("recursion-after", "recursion through after and then, per step", 1, (UNNESTED,),
        (ratio(1.2, UNNESTED), Target("growth_kib", 1024)), count=2000, long=1_000_000),
)
