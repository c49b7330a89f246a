"""Decide how long to write contexts before what is written is published: publishing must cost little of the time."""

_PUBLISHING_SHARE = 0.04  # of the time that contexts are written in, at most, but for some
_FREE_SECONDS = 1.0  # of the processor, which publishing a small library takes


def until_publish(elapsed: float, spent: float, last: float, computed: float) -> float:
    """Return for how many seconds to write contexts before the next publish, so that publishing takes a small share.

    `spent` of the seconds `elapsed` went into publishing so far, `last` is what a publish takes now. `computed` are the
    seconds of the processor that went into it, of which some are free: on a busy machine small libraries wait as well.
    """
    if computed < _FREE_SECONDS:
        return 0.0
    return max(0.0, (spent + last) / _PUBLISHING_SHARE - elapsed)
