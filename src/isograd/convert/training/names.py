"""Names of what compiled training steps are made of."""

from __future__ import annotations

#: Names that a rewritten loop is written with, and how a port spells them.
SPELLED = {
    "_isograd_jit": "ms.jit",
    "_isograd_value_and_grad": "ms.value_and_grad",
    "_isograd_vjp": "ms.vjp",
    "_isograd_grad": "ms.grad",
    "_isograd_grads": "ms.grad",
    "_isograd_sum": "ops.sum",
    "_isograd_learns": "composites.learns_in",
    "_isograd_pulled": "composites.pulled_back",
    "_isograd_kept": "composites.kept_for_each",
    "_isograd_mutable": "ms.mutable",
    "_isograd_varying": "composites.varying",
    "_isograd_clipped_norm": "composites.clipped_by_norm",
    "_isograd_clipped_value": "composites.clipped_by_value",
    "_isograd_same": "composites.require_same",
    "_isograd_scaler": "composites.scaler_if_any",
    "_isograd_descent": "composites.GradientDescent",
    "_isograd_apart": "composites.require_apart",
    "_isograd_states": "composites.states_of",
    "_isograd_copied": "composites.copied_states",
    "_isograd_restored": "composites.restore_states",
    "_isograd_averaged": "composites.averaged_gradients",
    "_isograd_record_class": "composites.record_class",
    "_isograd_record": "composites.make_record",
    "_isograd_named_tuple": "composites.make_named_tuple",
    "_isograd_is_record": "composites.is_record",
    "_isograd_field": "composites.field_of",
    "_isograd_fields": "composites.fields_of",
    "_isograd_element": "composites.element_of",
    "_isograd_shown": "composites.shown_records",
    "_isograd_with_records": "composites.with_records",
}
#: The runtime's names in projects whose steps are compiled: nothing there records gradients.
COMPILED = {
    "composites.SGD": "composites.GraphSGD",
    "composites.Adam": "composites.GraphAdam",
    "composites.AdamW": "composites.GraphAdamW",
    "composites.RMSprop": "composites.GraphRMSprop",
    "composites.Adagrad": "composites.GraphAdagrad",
    "composites.Adadelta": "composites.GraphAdadelta",
    "composites.Adamax": "composites.GraphAdamax",
    "composites.GradScaler": "composites.GraphScaler",
    "composites.DistributedDataParallel": "composites.GraphDataParallel",
    "composites.no_grad": "composites.unrecorded",
    "composites.inference_mode": "composites.unrecorded",
    "composites.set_grad_enabled": "composites.unrecorded",
    "composites.set_data": "composites.replace_data",
}
#: And where other code of the project records gradients beside its compiled steps.
BESIDE = COMPILED | {
    **{
        f"composites.{name}": f"composites.Recording{name}"
        for name in "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax".split()
    },
    **{f"composites.{name}": f"composites.{name}" for name in ("no_grad", "inference_mode")},
    "composites.set_grad_enabled": "composites.set_grad_enabled",
    "ms.jit": "composites.unrecorded_jit",
}
#: torch's optimizers that have a compiled rule.
OPTIMIZERS = frozenset(
    f"torch.optim.{name}" for name in "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax".split()
)
#: Blocks and decorators in which torch records nothing.
UNRECORDED = frozenset(
    f"torch.{place}{name}"
    for place in ("", "autograd.", "autograd.grad_mode.")
    for name in ("no_grad", "inference_mode")
)

#: Where torch keeps its schedules of learning rates, beside its optimizers.
SCHEDULES = "torch.optim.lr_scheduler."


def is_of_optimizers(api: str) -> bool:
    """Whether an API is an optimizer of torch's, or a method of one: no schedule."""
    return api.startswith("torch.optim.") and not api.startswith(SCHEDULES)
