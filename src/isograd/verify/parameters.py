"""Stage parameters: counts, shapes, dtypes, trainable or not, buffers, initial distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from isograd.frameworks.base import ParameterInfo
from isograd.model import Cause, Finding, Fix, Gap, Severity, Stage
from isograd.verify.initial import initial_findings
from isograd.verify.session import Session

_CAUSES = {
    ("Conv", "bias"): "conv.bias",
    ("Linear", "bias"): "linear.bias",
    ("LayerNorm", "bias"): "layer_norm.bias",
    ("LSTM", "bias"): "rnn.bias",
    ("GRU", "bias"): "rnn.bias",
    ("RNN", "bias"): "rnn.bias",
}


def check_parameters(session: Session) -> tuple[list[Finding], list[Gap], int, str]:
    """Findings, gaps, the number of compared tensors, and a sentence about them."""
    findings = [*_missing(session), *_mismatches(session), *initial_findings(session)]
    gaps = list(_gaps(session, {f.module for f in findings}))
    count = sum(len(pair.reference) for pair in session.pairing.pairs)
    ours, theirs = session.infos()
    trainable = (_trainable(ours), _trainable(theirs))
    detail = f"{trainable[0]:,} trainable values"
    if trainable[0] != trainable[1]:
        detail = f"{trainable[0]:,} trainable values in the reference, {trainable[1]:,} in the port"
    return findings, gaps, count, detail


def _trainable(infos: dict[str, ParameterInfo]) -> int:
    return sum(math.prod(p.shape) for p in infos.values() if p.trainable and p.tied_to is None)


def _missing(session: Session) -> Iterator[Finding]:
    """A parameter that one side of a paired module lacks."""
    ours, theirs = session.infos()
    partner = _module_partners(session)
    for name in session.pairing.unpaired_reference:
        info = ours[name]
        port_module = partner.get(info.module)
        conflict = next((b for a, b in session.pairing.shape_conflicts if a == name), None)
        kind = _kind(session, info.module)
        if port_module is None and conflict is None:
            conflict = _of_other_groups(session, kind, info)
        if port_module is None and conflict is not None:
            port_module = theirs[conflict].module
        if port_module is None or not info.trainable:
            continue
        if conflict is not None:
            message = f"{info.attribute} has shape {info.shape} but {theirs[conflict].shape} in "
            message += f"the port ({conflict})"
            cause = _cause_of_shape(kind, info.shape, theirs[conflict].shape)
            yield _structural("parameter.shape", info.module, message, cause, session, port_module)
        else:
            yield _structural(
                "parameter.missing",
                info.module,
                f"the port's {port_module or 'network'} has no {info.attribute} "
                f"(the reference's {kind} has one of shape {info.shape})",
                _cause(kind, info.attribute),
                session,
                port_module,
            )
    back = {port: reference for reference, port in partner.items()}
    for name in session.pairing.unpaired_port:
        info = theirs[name]
        if info.module not in back or not info.trainable:
            continue
        if any(name == b for _, b in session.pairing.shape_conflicts):
            continue
        module = back[info.module]
        yield _structural(
            "parameter.extra",
            module,
            f"the port's {info.module or 'network'} trains {info.attribute} of shape "
            f"{info.shape}, which the reference's {_kind(session, module)} does not have",
            _cause(_kind(session, module), info.attribute),
            session,
            info.module,
        )


def _of_other_groups(session: Session, kind: str, info: ParameterInfo) -> str | None:
    """The one weight of the port without a partner that differs in its groups alone."""
    _, theirs = session.infos()
    found = [
        name
        for name in session.pairing.unpaired_port
        if theirs[name].attribute == info.attribute
        and _cause_of_shape(kind, info.shape, theirs[name].shape) is not None
    ]
    return found[0] if len(found) == 1 else None


def _cause_of_shape(kind: str, reference: tuple[int, ...], port: tuple[int, ...]) -> Cause | None:
    """Groups of a convolution: they alone change the second axis of its weight."""
    if not kind.startswith("Conv") or "Transpose" in kind or len(reference) != len(port):
        return None
    others = [i for i in range(len(reference)) if i != 1]
    if any(reference[i] != port[i] for i in others) or reference[1] == port[1]:
        return None
    text = f"each output channel sees {port[1]} input channels instead of {reference[1]}"
    return Cause("conv.groups", None, None, text=text)


def _module_partners(session: Session) -> dict[str, str]:
    ours, theirs = session.infos()
    partners: dict[str, str] = {}
    for pair in session.pairing.pairs:
        if len(pair.reference) == len(pair.port) == 1:
            partners.setdefault(ours[pair.reference[0]].module, theirs[pair.port[0]].module)
    for name, other in session.pairing.shape_conflicts:
        partners.setdefault(ours[name].module, theirs[other].module)
    return partners


def _mismatches(session: Session) -> Iterator[Finding]:
    """Pairs that differ in dtype, in being trainable, or in being shared."""
    ours, theirs = session.infos()
    for pair in session.pairing.pairs:
        first, second = ours[pair.reference[0]], theirs[pair.port[0]]
        if first.trainable != second.trainable:
            words = ("trains", "does not train")
            yield _structural(
                "parameter.trainable",
                first.module,
                f"the reference {words[not first.trainable]} {pair.reference[0]}, the port "
                f"{words[not second.trainable]} {pair.port[0]}",
                _frozen(pair.port[0]) if first.trainable else None,
                session,
                second.module,
            )
        if first.dtype != second.dtype and not _harmless_dtypes(first, second):
            yield _structural(
                "parameter.dtype",
                first.module,
                f"{first.attribute} is {first.dtype} in the reference and {second.dtype} in the "
                "port",
                Cause("precision.cast", first.dtype, second.dtype),
                session,
                second.module,
            )
        if pair.untied and first.trainable:
            yield _structural(
                "parameter.untied",
                first.module,
                f"{', '.join(pair.reference)} is one shared parameter in the reference, but the "
                f"port trains {', '.join(pair.port)} apart",
                None,
                session,
                second.module,
            )
        if pair.tied_only_in_port and first.trainable:
            yield _structural(
                "parameter.tied",
                first.module,
                f"the port shares {', '.join(pair.port)} between parameters that the reference "
                "trains apart",
                None,
                session,
                second.module,
            )


def _frozen(name: str) -> Cause:
    text = f"{name} has requires_grad=False in the port"
    return Cause("optimizer.frozen", "trainable", "frozen", text=text)


def _harmless_dtypes(first: ParameterInfo, second: ParameterInfo) -> bool:
    integral = ("int" in first.dtype or first.dtype == "bool", "int" in second.dtype)
    return first.is_buffer and all(integral)


def _gaps(session: Session, found: set[str]) -> Iterator[Gap]:
    ours, theirs = session.infos()
    for name in session.pairing.unpaired_reference:
        if ours[name].module not in found:
            yield Gap(
                Stage.PARAMETERS,
                f"{name} {ours[name].shape} of the reference has no partner in the port",
                f'name it in the case: [weights] rename = {{ "{name}" = "…" }}',
            )
    partners = {b: a for a, b in _module_partners(session).items()}
    for name in session.pairing.unpaired_port:
        info = theirs[name]
        if partners.get(info.module) not in found:
            yield Gap(
                Stage.PARAMETERS,
                f"{name} {info.shape} of the port has no partner in the reference",
                "it keeps its own initial values; name its partner in [weights] rename",
            )


def ambiguous_gaps(session: Session) -> Iterator[Gap]:
    """Groups of parameters whose pairing only an agreeing forward pass could confirm."""
    for group in session.pairing.ambiguous:
        names = ", ".join(f"{' + '.join(p.reference)} → {' + '.join(p.port)}" for p in group)
        yield Gap(
            Stage.PARAMETERS,
            f"which parameter is which was guessed: {names}",
            "settle it in the case with [weights] rename",
        )


def _kind(session: Session, module: str) -> str:
    kinds = {m.name: m.kind for m in session.reference_structure.modules}
    return kinds.get(module, "module")


def _cause(kind: str, attribute: str) -> Cause | None:
    for (part, word), cause in _CAUSES.items():
        if part in kind and attribute.startswith(word):
            return Cause(cause, "present", "absent")
    return None


def _structural(
    code: str,
    module: str,
    message: str,
    cause: Cause | None,
    session: Session,
    port_module: str,
) -> Finding:
    made = {m.name: m for m in session.reference_structure.modules}.get(module)
    text = "make it as in the reference"
    if made is not None and made.library:
        given = ", ".join(f"{name}={value!r}" for name, value in made.arguments.items())
        text = f"the reference has {made.kind}({given})"
    fix = _where(session, port_module, text)
    return Finding(
        code, Severity.EFFECTIVE, Stage.PARAMETERS, module, message, cause=cause, fix=fix
    )


def _where(session: Session, port_module: str, text: str) -> Fix | None:
    return fix_at(session, port_module, text)


def fix_at(session: Session, port_module: str, text: str) -> Fix | None:
    """The line of the port that builds this module, or the nearest one around it."""
    lines = {m.name: m.where for m in session.port_structure.modules}
    name = port_module
    while name and not lines.get(name):
        name = name.rpartition(".")[0]
    where = lines.get(name)
    return Fix(text, where) if where else None
