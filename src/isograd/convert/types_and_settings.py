"""What of torch is no arithmetic: types, compilers, settings.  Data only.

Operators and layers stand in the knowledge, where they are executed; here stands what has nothing
to execute.
"""

from __future__ import annotations

#: Types and bases with a plain counterpart.
TYPES = {
    "torch.Tensor": "ms.Tensor",
    "torch.nn.Module": "nn.Cell",
    "torch.nn.Parameter": "ms.Parameter",
    "torch.Size": "tuple",
    "torch.jit.TracerWarning": "composites.TracerWarning",
    "torch.serialization.SourceChangeWarning": "composites.SourceChangeWarning",
}
#: Classes of tensors by their dtype.
TYPED_TENSORS = {
    f"torch.{package}{name}Tensor": dtype
    for package in ("", "cuda.")
    for name, dtype in (
        ("Float", "ms.float32"),
        ("Double", "ms.float64"),
        ("Half", "ms.float16"),
        ("Long", "ms.int64"),
        ("Int", "ms.int32"),
        ("Bool", "ms.bool_"),
        ("Byte", "ms.uint8"),
        ("Short", "ms.int16"),
        ("Char", "ms.int8"),
    )
}
#: What a class means as a dtype; torch.Tensor is that of floats.
DTYPES_OF_CLASSES = {**TYPED_TENSORS, "torch.Tensor": "ms.float32"}
#: What stands in annotations only.
ANNOTATIONS = {
    **dict.fromkeys(TYPED_TENSORS, "ms.Tensor"),
    "torch.device": "str",
    "torch.dtype": "ms.Type",
    "torch.Size": "tuple",
    "torch.memory_format": "str",
    "torch.Generator": "object",
    "torch.layout": "str",
    "torch.nn.Module": "nn.Cell",
    "torch.nn.Parameter": "ms.Parameter",
    "torch.nn.Sequential": "nn.SequentialCell",
    "torch.nn.ModuleList": "nn.CellList",
    "torch.nn.ModuleDict": "nn.CellDict",
    "torch.optim.Optimizer": "object",
}
#: Private helpers of torch's that much code uses, as names of the generated module.
HELPERS = {
    "torch.jit.isinstance": "composites.is_of_type",
    "torch.nn._single": "composites.single",
    "torch.nn._pair": "composites.pair",
    "torch.nn._triple": "composites.triple",
    "torch.nn._quadruple": "composites.quadruple",
    "torch.nn._ntuple": "composites.ntuple",
    "torch.nn._reverse_repeat_tuple": "composites.reverse_repeat_tuple",
    "torch.nn.functional._Reduction.get_enum": "composites.reduction_number",
    "torch.nn._reduction.get_enum": "composites.reduction_number",
    "torch.autograd.Function": "composites.Function",
    "torch.autograd.function.Function": "composites.Function",
    "torch.nn.modules.utils._single": "composites.single",
    "torch.nn.modules.utils._pair": "composites.pair",
    "torch.nn.modules.utils._triple": "composites.triple",
    "torch.nn.modules.utils._quadruple": "composites.quadruple",
    "torch.nn.modules.utils._ntuple": "composites.ntuple",
    **{
        f"torch.utils._pytree.{name}": f"composites.{name}"
        for name in "tree_flatten tree_unflatten tree_leaves tree_map tree_map_only".split()
    },
}
#: `f(condition, message)` that is an assertion.
ASSERTIONS = frozenset(
    ("torch._assert", "torch._assert_async", "torch._check", "torch._check_value")
)
#: Members of MindSpore's cells that are as torch's modules have them.
OF_CELLS = frozenset(
    """apply register_forward_hook register_forward_pre_hook register_buffer training
    register_backward_hook register_state_dict_pre_hook""".split()
)
#: Methods of tensors that are attributes of results, and of pandas' tables: `x.max(0).values`.
OF_RESULTS = frozenset(("torch.Tensor.values", "torch.Tensor.indices"))
#: Decorators of torch's compilers: without them the function computes the same.
DECORATORS = frozenset(
    """torch.jit.ignore torch.jit.unused torch.jit.export torch.jit.script
    torch.jit.script_if_tracing torch.jit.interface torch.jit._overload_method torch.jit._overload
    torch.jit.script_method torch.fx.wrap torch.compile torch._dynamo.disable
    torch.compiler.disable torch._dynamo.allow_in_graph torch.compiler.allow_in_graph
    torch._disable_dynamo torch.onnx.symbolic_helper.parse_args
    torch.compiler.assume_constant_result""".split()
)
#: Statements that only set or tell something of torch's own machinery.
STATEMENTS = frozenset(
    """torch._C._log_api_usage_once torch.fx.wrap torch.jit.script
    torch.set_float32_matmul_precision torch.set_printoptions torch.cuda.empty_cache
    torch.set_num_threads
    torch.jit.annotate torch._dynamo.reset torch._dynamo.mark_dynamic""".split()
)
#: Settings of torch's backends: `torch.backends.cudnn.benchmark = True`.
SETTINGS = ("torch.backends.", "torch._dynamo.config.", "torch._inductor.config.")
#: Questions about torch's compilers, which never run a port.
ANSWERS = {
    "torch.jit.is_scripting": "False",
    "torch.jit.is_tracing": "False",
    "torch.onnx.is_in_onnx_export": "False",
    "torch.compiler.is_compiling": "False",
    "torch.compiler.is_exporting": "False",
    "torch._dynamo.is_compiling": "False",
    "torch.compiler.is_dynamo_compiling": "False",
    "torch.are_deterministic_algorithms_enabled": "False",
    "torch.is_deterministic_algorithms_warn_only_enabled": "False",
    "torch.is_autocast_enabled": "False",
    "torch._C._get_tracing_state": "None",
    "torch._C._is_tracing": "False",
    # MindSpore chooses its kernels itself.
    "torch.backends.mkldnn.is_available": "False",
}
#: The same questions as functions that are passed around.
NEVER = "composites.never"
#: Calls that return their argument, by its position, where a network is not compiled.
THROUGH = {
    "torch.jit.script": 0,
    "torch.jit.annotate": 1,
    "torch.compile": 0,
    "torch.jit.unused": 0,
    "torch.jit.ignore": 0,
    "torch.jit.export": 0,
    "torch.fx.wrap": 0,
}
#: Members that are the same, or of no matter, whatever is known of them.
LEFT_ALONE = frozenset(
    """torch.nn.Module.forward torch.nn.Module.training torch.Tensor.requires_grad
    torch.nn.Module.extra_repr torch.nn.Module.dump_patches torch.nn.Module.__class__""".split()
)
SAME_ATTRIBUTES = frozenset(("torch.Tensor.requires_grad", "torch.nn.Module.training"))
