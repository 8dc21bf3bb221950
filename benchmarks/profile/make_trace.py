"""Write a large Chrome trace as torch.profiler writes it: steps, nested operators, shapes.

`python make_trace.py OUT.json EVENTS` writes about 200 bytes per event. A step holds a forward
pass, a backward pass on a second thread, and an update; every tenth step is slower.
"""

from __future__ import annotations

import sys
from pathlib import Path

HEAD = """{
    "schemaVersion": 1,
    "deviceProperties": [],
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1790857026000000000,
    "traceEvents": [
"""
EVENT = """  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": 7, "tid": %d,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d%s
    }
  }"""
#: Operator, its inner operator, microseconds, shapes.
OPERATORS = (
    ("aten::conv2d", "aten::mkldnn_convolution", 90.0, "[[32, 64, 56, 56], [64, 64, 3, 3]]"),
    ("aten::relu", "aten::clamp_min", 20.0, "[[32, 64, 56, 56]]"),
    ("aten::linear", "aten::addmm", 40.0, "[[128], [32, 256], [256, 128]]"),
    ("aten::to", "aten::_to_copy", 12.0, "[[32, 256]]"),
)


def write(path: Path, count: int, *, steps: int = 1000) -> None:
    """Write `count` events into `steps` steps; raise OSError where the file cannot be written."""
    pairs = max(1, (count - steps) // steps // 2)
    number, now = 0, 4653595028878.362
    with path.open("w", encoding="utf-8") as stream:
        stream.write(HEAD)
        for step in range(steps):
            lines, begin, factor = [], now, 1.5 if step % 10 == 0 else 1.0
            for index in range(pairs):
                outer, inner, time_us, shapes = OPERATORS[index % len(OPERATORS)]
                tid = 7 if index < pairs // 2 else 8
                took = time_us * factor
                extra = f', "Record function id": 0, "Input Dims": {shapes}'
                extra += ', "Input type": ["float", "float"]'
                lines.append(EVENT % ("cpu_op", outer, tid, now, took, number, extra))
                lines.append(
                    EVENT % ("cpu_op", inner, tid, now + 1.0, took - 2.0, number + 1, extra)
                )
                number += 2
                now += took + 3.0
            name = f"ProfilerStep#{step}"
            lines.append(EVENT % ("user_annotation", name, 7, begin, now - begin, number, ""))
            number += 1
            now += 5.0
            stream.write(",\n".join(lines) + (",\n" if step + 1 < steps else "\n"))
        stream.write('  ],"traceName": "made" }\n')


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
