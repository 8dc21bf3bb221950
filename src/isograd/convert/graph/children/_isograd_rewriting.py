"""What is changed in a graph of torch.export before it is written as plain values."""

from __future__ import annotations

import operator
from typing import Any

import torch


def inlined(program: Any) -> Any:
    """The program with the graphs that it calls as a whole written out: parts without gradient."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        name = getattr(node.target, "__name__", "")
        if node.op != "call_function" or not name.startswith("wrap_with_"):
            continue
        place = next(i for i, part in enumerate(node.args) if _is_graph(part, program))
        inner = getattr(program.graph_module, node.args[place].target).graph
        given = iter(node.args[place + 1 :])
        known: dict[Any, Any] = {}
        without_gradient = name == "wrap_with_set_grad_enabled" and not node.args[0]
        with graph.inserting_before(node):
            for part in inner.nodes:
                if part.op == "placeholder":
                    known[part] = next(given)
                elif part.op == "output":
                    results = part.args[0]
                else:
                    known[part] = graph.node_copy(part, known.__getitem__)
            listed = results if isinstance(results, (list, tuple)) else (results,)
            outputs = [known[part] for part in listed]
            if without_gradient:
                outputs = [_detached(graph, part) for part in outputs]
        for user in list(node.users):
            if user.target is operator.getitem:
                user.replace_all_uses_with(outputs[user.args[1]])
                graph.erase_node(user)
        graph.erase_node(node)
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    return program


_SCATTERS = {
    torch.ops.aten.slice.Tensor: torch.ops.aten.slice_scatter.default,
    torch.ops.aten.select.int: torch.ops.aten.select_scatter.default,
}


def stored_back(program: Any) -> Any:
    """The program in which a change of a part (`x[:, 0] = y`) makes a new whole.

    What reads the whole afterwards reads the new one.
    """
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        packet = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        if not packet.endswith("_") or packet.endswith("__") or not node.args:
            continue
        part: Any = node.args[0]
        changed: Any = node
        while isinstance(part, torch.fx.Node) and part.target in _SCATTERS:
            whole: Any = part.args[0]
            if whole.op == "placeholder":
                break
            later = _users_after(graph, whole, node)
            with graph.inserting_after(changed):
                scatter = _SCATTERS[part.target]
                made = graph.call_function(scatter, (whole, changed, *part.args[1:]), part.kwargs)
            made.meta.update(node.meta)
            made.meta["val"] = whole.meta["val"]
            for user in later:
                user.replace_input_with(whole, made)
            part, changed = whole, made
    return program


def unaliased(program: Any) -> Any:
    """The program in which a cast to the own dtype is the module's that makes it.

    torch returns the tensor itself, so whatever else reads that tensor later would read the cast,
    and a norm that casts what it is given would return two tensors.
    """
    for node in program.graph_module.graph.nodes:
        if not _returns_own(node):
            continue
        inside, whole = _calls(node)[-1:], node.args[0]
        if not inside or inside[0] in _calls(whole):
            continue
        for user in list(node.users):
            if inside[0] not in _calls(user):
                user.replace_input_with(node, whole)
    return program


def _returns_own(node: Any) -> bool:
    """Whether an operator returns its argument itself."""
    packet = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    if packet not in ("to", "type_as", "contiguous") or not isinstance(node.args[0], torch.fx.Node):
        return False
    given, made = node.args[0].meta.get("val"), node.meta.get("val")
    if not isinstance(given, torch.Tensor) or not isinstance(made, torch.Tensor):
        return False
    is_copy = node.kwargs.get("copy") or (packet == "to" and True in node.args)
    is_same = given.dtype == made.dtype and given.device == made.device
    return is_same and given.stride() == made.stride() and not is_copy


def _calls(node: Any) -> list[str]:
    """The calls of modules that a node stands in, the outermost first."""
    return list(node.meta.get("nn_module_stack") or {})


def _users_after(graph: Any, node: Any, place: Any) -> list[Any]:
    order = {found: number for number, found in enumerate(graph.nodes)}
    return [user for user in node.users if order[user] > order[place]]


def _is_graph(part: Any, program: Any) -> bool:
    if not isinstance(part, torch.fx.Node) or part.op != "get_attr":
        return False
    return isinstance(getattr(program.graph_module, str(part.target)), torch.fx.GraphModule)


def _detached(graph: Any, node: Any) -> Any:
    found = graph.call_function(torch.ops.aten.detach.default, (node,))
    found.meta.update(node.meta)
    return found
