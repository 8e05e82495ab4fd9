"""The measured limits of a GPU beside its maker's data sheet: a bound that nobody reaches is no bound."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any

from autograder.measuring.device import device_name
from autograder.measuring.limits import rates


@dataclass(frozen=True)
class Sheet:
    """What a maker's data sheet promises: bytes a second of the memory, operations a second in float32 on the
    plain units, and in TF32 on those for matrices, without sparsity (None: there are none), and its ``link``.
    """

    bytes: float
    float32: float
    tf32: float | None
    link: str


# By the name that the driver gives; the first that matches counts.
SHEETS = {
    r"H200": Sheet(4.8e12, 67e12, 494e12, "https://www.nvidia.com/en-us/data-center/h200/"),
    r"H100.*(PCIe)": Sheet(2.0e12, 51e12, 378e12, "https://www.nvidia.com/en-us/data-center/h100/"),
    r"H100": Sheet(3.35e12, 67e12, 494e12, "https://www.nvidia.com/en-us/data-center/h100/"),
    r"A100.*80GB": Sheet(2.039e12, 19.5e12, 156e12, "https://www.nvidia.com/en-us/data-center/a100/"),
    r"A100": Sheet(1.555e12, 19.5e12, 156e12, "https://www.nvidia.com/en-us/data-center/a100/"),
    r"L4\b": Sheet(0.3e12, 30.3e12, 60e12, "https://www.nvidia.com/en-us/data-center/l4/"),
    r"T4\b": Sheet(0.32e12, 8.1e12, None, "https://www.nvidia.com/en-us/data-center/tesla-t4/"),
    r"V100": Sheet(0.9e12, 15.7e12, None, "https://www.nvidia.com/en-us/data-center/v100/"),
}


def sheet_of(name: str) -> Sheet | None:
    """The data sheet of the device of this name; None where it is not known here."""
    return next((sheet for pattern, sheet in SHEETS.items() if re.search(pattern, name)), None)


def compare_with_sheet(device: str) -> dict[str, Any]:
    """The measured rates with the data sheet's figures beside: shares of 1 are what its maker promises."""
    name = device_name(device)
    measured, sheet = rates(device, 1), sheet_of(name)
    found: dict[str, Any] = {"device": name, "errors": [], **measured}
    if sheet:
        largest = measured["bytes_per_second"][-1][1]
        found["sheet"] = {
            "link": sheet.link,
            "bytes_per_second": sheet.bytes,
            "flops_per_second": sheet.tf32 or sheet.float32,
            "share_of_bytes": round(largest / sheet.bytes, 3),
            "share_of_flops": round(measured["flops_per_second"] / (sheet.tf32 or sheet.float32), 3),
        }
    return found


if __name__ == "__main__":
    print(json.dumps(compare_with_sheet(sys.argv[1])))
