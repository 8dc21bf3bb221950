"""Rules that no single name or node decides: functions from one function's code to its places."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from isograd.static_graph.detectors import constructs, kept_on_self, writes
from isograd.static_graph.detectors.common import Found
from isograd.static_graph.scope import FileScope
from isograd.static_graph.values import Locals

DETECTORS: dict[str, Callable[[Locals], Found]] = {
    function.__name__: function
    for function in (
        constructs.two_loops,
        constructs.dict_unpacking,
        constructs.for_else,
        constructs.while_else,
        constructs.fstring_format,
        constructs.lambda_attribute,
        constructs.sorted_key,
        constructs.branch_dtype,
        constructs.branch_none,
        constructs.branch_append,
        constructs.dict_or,
        constructs.cells_reversed,
        constructs.list_reversed,
        kept_on_self.attribute_of_another,
        kept_on_self.class_method,
        constructs.jit_class_tensors,
        constructs.dataclass,
        constructs.plain_object,
        constructs.named_tuple,
        constructs.mask_assigned,
        constructs.partial,
        constructs.sequence_slice,
        constructs.dict_call,
        constructs.math_tensor,
        constructs.tensor_of_tensors,
        kept_on_self.self_renamed,
        kept_on_self.self_new,
        kept_on_self.self_counter,
        kept_on_self.self_cache,
        kept_on_self.self_kept,
        kept_on_self.self_container,
        kept_on_self.slice_in_list,
        constructs.mask_index,
        constructs.pad_constant,
        constructs.dict_input,
        constructs.decorated,
        constructs.while_tensor_counter,
        constructs.is_ellipsis,
        constructs.isinstance_range,
        constructs.is_tensor,
        writes.list_alias,
        writes.parameter_write,
        writes.view_write,
        writes.write_after_read,
        writes.augmented_alias,
        writes.in_place_result,
    )
}
FILE_DETECTORS: dict[str, Callable[[FileScope], Iterator[tuple[str, ast.AST]]]] = {
    "cell_list_construct": constructs.cell_list_construct
}
