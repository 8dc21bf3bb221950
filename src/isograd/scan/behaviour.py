"""What torch's functions and methods return, and which names say that something is a tensor.

Data only.  A function of torch that is not named here returns a tensor; a method of a tensor too.
"""

from __future__ import annotations

#: Methods and functions that return several tensors as a tuple or list.
SEVERAL = frozenset(
    """split chunk unbind topk sort kthvalue mode meshgrid broadcast_tensors aminmax unsafe_chunk
    unsafe_split tensor_split hsplit vsplit dsplit split_with_sizes svd qr eigh eig slogdet lu
    lstsq cummax cummin std_mean var_mean frexp max_pool2d_with_indices
    max_pool1d_with_indices max_pool3d_with_indices lu_factor svd_lowrank pca_lowrank geqrf
    triangular_solve inv_ex cholesky_ex solve_ex unique_consecutive histogram histogramdd
    align_tensors sort_out pad_packed_sequence multi_head_attention_forward grad
    block_diag_several""".split()
)
#: Parts of named results that are several tensors, by the function.
PARTS_OF_SEVERAL = frozenset((("torch.histogramdd", "bin_edges"),))
#: Return a tuple only where a dimension is given.
SEVERAL_BY_DIMENSION = frozenset("max min median nanmedian".split())
#: Return a tuple only where one of these arguments is true.
SEVERAL_BY_FLAG = {
    "unique": ("return_inverse", "return_counts"),
    "max_pool1d": ("return_indices",),
    "max_pool2d": ("return_indices",),
    "max_pool3d": ("return_indices",),
    "nonzero": ("as_tuple",),
}
#: Numbers of Python that come from the contents of a tensor.
COMPUTED_RESULTS = frozenset("item tolist equal allclose is_nonzero __bool__ __int__".split())
#: Shapes and sizes.
SHAPE_RESULTS = frozenset(
    "size shape numel nelement stride broadcast_shapes nbytes itemsize".split()
)
#: Neither tensors nor computed from one.
PLAIN_RESULTS = frozenset(
    """dim ndimension is_tensor is_floating_point is_complex is_contiguous is_cuda is_same_size
    get_device numpy data_ptr element_size storage untyped_storage storage_offset type_name
    is_pinned has_names is_inference is_storage is_shared backward register_hook
    get_default_dtype set_default_dtype set_default_device get_num_threads set_num_threads
    set_float32_matmul_precision manual_seed seed initial_seed get_rng_state_int
    use_deterministic_algorithms save finfo iinfo device Size dtype Generator layout
    memory_format set_grad_enabled no_grad enable_grad inference_mode is_grad_enabled
    is_autocast_enabled autocast can_cast set_printoptions get_autocast_dtype
    get_autocast_gpu_dtype is_deterministic are_deterministic_algorithms_enabled __version__
    compiled_with_cxx11_abi promote_types result_type_of is_inference_mode_enabled
    set_default_tensor_type retain_grad requires_grad is_leaf ndim dtype device layout
    is_sparse is_quantized is_meta is_mps is_nested grad_fn output_nr names
    register_post_accumulate_grad_hook is_signed is_conj is_neg result_type
    get_autocast_cpu_dtype is_vulkan is_xla is_xpu is_ipu is_mkldnn is_hpu is_mtia is_maia
    is_cpu is_sparse_csr is_coalesced dense_dim sparse_dim""".split()
)
#: Questions and settings.
PLAIN_BEGINNINGS = ("is_", "get_", "has_", "set_d", "set_n", "set_f", "set_p", "set_g", "set_w")
#: Modules of torch in which nothing returns a tensor unless it is named in TENSOR_FUNCTIONS.
NO_TENSOR_MODULES = (
    "torch.cuda", "torch.jit", "torch.backends", "torch.utils", "torch.distributed", "torch.hub",
    "torch.onnx", "torch.fx", "torch.profiler", "torch.autograd.profiler", "torch.version",
    "torch.compiler", "torch.multiprocessing", "torch.random", "torch.overrides", "torch.export",
    "torch.library", "torch.serialization", "torch.amp", "torch.mps", "torch.accelerator",
    "torch.ops", "torch.classes", "torch.types", "torch.quantization", "torch.func",
    "torch.package",
    "torch.nn.utils", "torch.optim", "torch.distributions", "torch.nn.attention", "torch.futures",
    "torch.nested.bundled", "torch.nn.parallel", "torch.autograd", "torch.return_types",
)  # fmt: skip
#: What is not known although its neighbours return tensors.
UNKNOWN_RESULTS = frozenset(
    """torch.load torch.compile torch.vmap torch.utils.checkpoint.checkpoint torch.ops
    torch.einsum_path torch.jit.script torch.jit.trace torch.cond torch.while_loop
    torch.hub.load torch.nn.parallel torch.hub.load_state_dict_from_url torch.utils._pytree
    torch.func.vmap torch.func.functional_call torch.nn.utils.rnn.PackedSequence
    torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence
    torch.nn.utils.rnn.unpack_sequence torch.nn.utils.rnn.unpad_sequence
    torch.utils.data.default_collate torch.utils.data.default_convert
    torch.utils.checkpoint.checkpoint_sequential torch.nn.utils.skip_init""".split()
)
#: Modules whose functions may return tensors, modules or anything else.
UNKNOWN_MODULES = (
    "torch.func.", "torch.autograd.functional.", "torch.distributions.", "torch.nn.parallel.",
    "torch.nn.attention.flex_attention.", "torch.nn.utils.fus", "torch.nn.utils.prune.",
    "torch.nn.utils.parametri", "torch.nn.utils.stateless.",
)  # fmt: skip
#: Several tensors, of modules where else nothing returns one.
SEVERAL_FUNCTIONS = frozenset(("torch.autograd.grad", "torch.nn.utils.rnn.pad_packed_sequence"))
TENSOR_FUNCTIONS = frozenset(
    """torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.get_total_norm
    torch.nn.utils.rnn.pad_sequence torch.autograd.Variable
    torch.nn.utils.parameters_to_vector
    torch.cuda.FloatTensor torch.cuda.LongTensor torch.utils.dlpack.from_dlpack
    torch.sparse.FloatTensor torch.sparse.mm torch.spmm
    torch.distributions.kl_divergence""".split()
)
#: Classes of torch whose instances are tensors.
TENSOR_CLASSES = frozenset(
    """torch.Tensor torch.nn.Parameter torch.nn.UninitializedParameter torch.nn.Buffer
    torch.FloatTensor torch.LongTensor torch.IntTensor torch.BoolTensor torch.DoubleTensor
    torch.HalfTensor torch.ByteTensor torch.BFloat16Tensor torch.ShortTensor torch.CharTensor
    torch.cuda.FloatTensor torch.cuda.LongTensor torch.cuda.IntTensor torch.cuda.BoolTensor
    torch.cuda.HalfTensor torch.cuda.DoubleTensor torch.cuda.ByteTensor
    torch.autograd.Variable""".split()
)
#: Modules whose call returns (output, state) rather than a tensor.
PAIR_MODULES = frozenset(
    "torch.nn.LSTM torch.nn.GRU torch.nn.RNN torch.nn.MultiheadAttention torch.nn.LSTMCell".split()
)
#: Methods whose result shares the memory of the tensor.
VIEWS = frozenset(
    """view view_as transpose permute expand expand_as narrow select unfold diagonal t T mT H mH
    squeeze unsqueeze swapaxes swapdims movedim moveaxis as_strided unflatten real imag data
    detach index_select_view adjoint""".split()
)
#: Names that Python's own types, files, paths and images share with tensors: a call of one on an
#: unknown object says nothing.
EVERYDAY = frozenset(
    """add remove copy index count sort split values indices type to float half int bool apply map_
    update_ size data device dtype names name shape layout grad mode fill type real imag T H
    numpy cpu cuda eval train requires_grad_ share_memory_ is_shared backward set_ where_ put
    dim detach_hook zero_grad equal register_hook char short long double byte storage new
    difference crop resize rotate save load get set insert format replace render step dist
    sign is_leaf output_nr version retain_grad abs_path stride filter item apply_ align_to
    refine_names rename to_dense values_ dequantize module_load inverse exp log cat bool
    is_set stop xpu ipu mtia hsplit ge gt le lt eq ne mul sub div neg pow and_ or_ not_
    test""".split()
)
#: Names that numpy's arrays (and pandas, jax, TensorFlow) share with tensors: they say "tensor"
#: only in a file that imports none of these.
ARRAY_NAMES = frozenset(
    """all any argmax argmin argsort choose clip conj cumprod cumsum diagonal dot flatten imag item
    max mean min nonzero prod ravel real repeat reshape resize round squeeze std sum swapaxes
    take tolist trace dot transpose var shape ndim dtype T size nbytes itemsize astype fill sort
    abs median sqrt square exp log tile expand_dims where unique isnan isinf index_select
    gather scatter quantile corr cov diff nunique rolling pow rank ge gt le lt eq ne mul sub
    div add""".split()
)
ARRAY_LIBRARIES = frozenset("numpy pandas jax tensorflow cupy scipy mxnet mindspore paddle".split())
#: A file that imports one of these may be given torch's tensors.
TORCH_LIBRARIES = frozenset(
    "torch torchvision torchaudio functorch timm lightning pytorch_lightning transformers".split()
)
#: Read, not called, these say "tensor" of an unknown object.
TELLING_ATTRIBUTES = frozenset("requires_grad grad_fn is_cuda is_leaf mT mH is_sparse".split())
#: Keywords that only torch's methods take.
TELLING_KEYWORDS = frozenset(
    "dim keepdim dim0 dim1 start_dim end_dim as_tuple rounding_mode unbiased non_blocking "
    "memory_format".split()
)
#: Results whose shape depends on values.
RAGGED_RESULTS = frozenset("nonzero masked_select unique unique_consecutive argwhere".split())
#: Names of parameters that are sizes, even of a forward method.
NUMBER_NAMES = frozenset(
    "h w height width H W D T size shape n k scale spatial_shapes training mode step idx".split()
)

#: Methods of a tensor that take nothing by position: `self.relu(x)` is none of them.
WITHOUT_ARGUMENTS = frozenset(
    """abs absolute acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv
    exp exp2 expm1 floor frac isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p
    log2 logical_not neg negative positive rad2deg reciprocal relu rsqrt sgn sigmoid sign signbit
    sin sinc sinh sqrt square tan tanh trunc detach dim nelement numel is_floating_point
    is_complex""".split()
)
#: Of torch.distributions' classes: what is a tensor, and what returns one.
DISTRIBUTION_ATTRIBUTES = frozenset(
    """loc scale rate low high probs logits mean mode stddev variance concentration concentration0
    concentration1 alpha df df1 df2 cov_factor cov_diag covariance_matrix precision_matrix
    scale_tril""".split()
)
DISTRIBUTION_METHODS = frozenset(
    "sample rsample log_prob entropy cdf icdf perplexity enumerate_support".split()
)


def is_unknown(name: str) -> bool:
    """Whether nothing is known of what a function returns."""
    is_open = name in UNKNOWN_RESULTS or name.startswith(UNKNOWN_MODULES)
    return is_open and name not in TENSOR_FUNCTIONS


def is_distribution(name: str) -> bool:
    """Whether a name is one of torch.distributions' classes, and no transform."""
    head, _, last = name.rpartition(".")
    return head == "torch.distributions" and last[:1].isupper() and not last.endswith("Transform")


#: Functions of numpy's whose result is a tensor where they are given one.
ARRAY_WRAPPING = frozenset(
    """abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and
    bitwise_not bitwise_or bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad
    degrees divide equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod gcd
    greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp left_shift less
    less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor maximum minimum mod multiply negative nextafter not_equal positive power rad2deg
    radians reciprocal remainder right_shift rint sign signbit sin sinh spacing sqrt square
    subtract tan tanh true_divide trunc clip around round cumsum cumprod argmax argmin
    argsort""".split()
)
