"""What the races of protocols have in common."""
import statistics
import time


def cpu_nanoseconds(pid):
    """The CPU time of all threads of a process, which needs no rounding to ticks. See clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def text(ratios):
    """The median of ratios, and their range."""
    return f"{statistics.median(ratios):.2f} [{min(ratios):.2f}–{max(ratios):.2f}]"
