"""What MindSpore compiles in plain steps, and how long that takes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isograd.profile.model import Compilation
from isograd.profile.record.places import shown_path
from isograd.profile.record.schedule import Schedule
from isograd.recording.mindspore_reach import jit_executor_class


class CompilationWatch:
    """Wraps the compilers of `jit` and of cells in GRAPH_MODE."""

    def __init__(self) -> None:
        self._found: dict[Any, Compilation] = {}
        self._depth = 0
        self._window: Callable[[], str] = str
        self._schedule: Schedule

    def attach(self, window: Callable[[], str], begins: Callable[[], None]) -> Callable[[], None]:
        """Count what is compiled while the window is `plain`; the function that undoes it.

        begins: called before each compilation.
        """
        from mindspore.graph import api

        undo = [
            self._wrap(jit_executor_class(), lambda one, _: one.fn, lambda _: api.ms_compile_cache),
            self._wrap(api._CellGraphExecutor, lambda _, cell: cell, lambda o: o.compile_cache),
        ]
        checked = getattr(api, "_check_recompile", None)  # private: called before each compilation

        def check(*arguments: Any) -> Any:
            begins()
            return checked(*arguments) if checked is not None else None

        if checked is not None:
            api._check_recompile = check
            undo.append(lambda: setattr(api, "_check_recompile", checked))
        self._window = window

        self._schedule = schedule = Schedule()

        def all_undone() -> None:
            schedule.close()
            for one in undo:
                one()

        return all_undone

    def _wrap(
        self, executor: Any, function_of: Callable[..., Any], cache_of: Callable[..., Any]
    ) -> Callable[[], None]:
        original = executor.compile

        def compile_(one: Any, what: Any, *arguments: Any, **options: Any) -> Any:
            is_outer, cache = self._depth == 0, cache_of(what)
            known, begin = len(cache), self._now()
            self._depth += 1
            try:
                return original(one, what, *arguments, **options)
            finally:
                self._depth -= 1
                if is_outer and len(cache) > known and self._window() == "plain":
                    self._add(function_of(one, what), self._now() - begin)

        executor.compile = compile_
        return lambda: setattr(executor, "compile", original)

    def _now(self) -> float:
        """Seconds without those in which others had the processor, as steps are timed."""
        return time.perf_counter() - self._schedule.read()[1] / 1e9

    def _add(self, function: Any, seconds: float) -> None:
        body = function if inspect.isroutine(function) else type(function).construct
        code = inspect.unwrap(body).__code__
        name = code.co_name if body is function else type(function).__name__
        where = f"{shown_path(code.co_filename)}:{code.co_firstlineno}"
        known = self._found.get(code, Compilation(where, name, 0, 0.0))
        self._found[code] = replace(known, count=known.count + 1, seconds=known.seconds + seconds)

    def found(self) -> tuple[Compilation, ...]:
        """Each function that was compiled, with how often and for how long."""
        return tuple(self._found.values())
