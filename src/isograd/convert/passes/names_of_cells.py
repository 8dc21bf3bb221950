"""Names in a module of the program's that are those of MindSpore's own Cell: `self.cells`."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class

#: What a Cell (2.10) keeps under these names, or refuses: each was set, with numbers, texts, lists.
_KEPT = frozenset(
    """_add_mixed_precision_flag _backward_hook _backward_pre_hook _call_post_process
    _call_pre_process _cell_tag _cells _complex_call _construct_sig _forward_hook
    _forward_hook_always_called _forward_hook_with_kwargs _forward_pre_hook
    _forward_pre_hook_with_kwargs _init_check _jit_config_dict _params _params_list _recompute_cell
    _saved_tensors_pack_hook _self_check _set_attr_for_object _shard_fn _user_parameters add_flags
    add_flags_recursive bprop_debug cell_init_args cells cells_and_names
    check_names_and_refresh_name cls_name compile_cache compile_phase compiled create_time
    enable_backward_hook exist_names exist_objs extend_repr get_parameters has_bprop
    jit_config_dict mixed_precision_type name_cells parallel_parameter_merge_net_dict
    parallel_parameter_name_list param_prefix parameter_layout_dict parameters_and_names
    parameters_dict phase phase_cache pipeline_segment pipeline_stage set_grad set_train
    trainable_params update_parameters_name""".split()
)
#: What it refuses as the names of children.
_NO_CHILDREN = frozenset(
    """_apply _auto_prefix _get_scope _phase _predict _recompute cast_inputs check_names
    compile_and_run generate_scope get_flags get_func_graph_proto get_inputs
    get_mixed_precision_type get_scope get_sub_cell global_cells init_parameters_data
    insert_child_to_cell insert_param_to_cell is_top_cell offload parameters_broadcast_dict
    recompute register_parameter_forward_hook register_saved_tensors_hooks
    remove_redundant_parameters run_construct set_boost set_broadcast_flag set_comm_fusion
    set_data_parallel set_inputs set_jit_config set_mixed_precision_type shard to_float
    total_instance_count untrainable_params update_cell_prefix update_cell_type""".split()
)
#: Methods that a Cell calls itself.
_METHODS = frozenset(
    """_backward_hook _backward_pre_hook _call_post_process _call_pre_process _cell_tag
    _complex_call _forward_hook _forward_pre_hook _set_attr_for_cell _set_attr_for_object cells
    cells_and_names construct extend_repr get_parameters insert_child_to_cell name_cells
    parameters_and_names trainable_params""".split()
)
_MADE = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_ADVICE = "Rename it here and wherever the program reads it."


class NamesOfCells:
    """`self.phase = None`, `self.cells = nn.ModuleList(…)`, `def construct(self, x)`."""

    kinds = (ast.Attribute, ast.FunctionDef)
    examples = (
        Example(
            "an attribute that is a property of MindSpore's Cell",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.phase = 'warm-up'

                def forward(self, x):
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "the same name in what is no module",
            """
            class Settings:
                def __init__(self):
                    self.phase = 'warm-up'
                    self.cells = 3
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report the name: another one in the port would change the names of parameters."""
        if isinstance(node, ast.FunctionDef):
            owner = file.tree.parents.get(node)
            is_own = isinstance(owner, ast.ClassDef) and node.name in _METHODS
            name = node.name
        else:
            assert isinstance(node, ast.Attribute)
            name = node.attr
            if name not in _KEPT and name not in _NO_CHILDREN:
                return False
            if not isinstance(node.ctx, ast.Store) or getattr(node.value, "id", "") != "self":
                return False
            owner = next((up for up in file.tree.above(node) if isinstance(up, ast.ClassDef)), None)
            is_own = name in _KEPT or _is_child(node, file)
        if is_own and isinstance(owner, ast.ClassDef) and is_module_class(owner, file):
            message = f"{name} is a name of MindSpore's nn.Cell, which it keeps for itself"
            file.finding(node, "not-converted", message, _ADVICE)
        return False


def _is_child(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether a layer or a parameter is made where an attribute is bound."""
    value = getattr(file.tree.parents.get(node), "value", None)
    named = () if value is None else (file.named.get(part, "") for part in ast.walk(value))
    return any(api in _MADE or file.names.kind(api) == "M" for api in named)
