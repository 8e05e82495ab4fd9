"""Figures for people."""


def as_time(value: float) -> str:
    """A time for people: three digits and the unit that fits."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def times(ratio: float) -> str:
    """A ratio for people, three digits: "0.62×", "2.45×", "1,310×"."""
    return f"{rounded(ratio)}×"


def rounded(number: float) -> str:
    """A number for people: three digits, and commas instead of an exponent."""
    return f"{float(f'{number:.3g}'):,.10g}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """ "1 copy", "2 copies"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: float) -> str:
    """Bytes for people: 1 kB is 1,000 bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" or number >= 100 else f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError
