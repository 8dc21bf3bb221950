"""What layers hold, by MindSpore's names: `norm.weight` is `norm.gamma`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert import layout
from isograd.convert.analysis.terms import Own, Row
from isograd.convert.file import FileEdit
from isograd.convert.operator_signs import SIGNS
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.knowledge.entry import UNHELD, UNKNOWN
from isograd.scan.values import ANY_MODULE, Api, ClassInfo, Instance, Made

_MODULE = "torch.nn.Module"
_ASKS = frozenset(("getattr", "hasattr", "setattr", "delattr"))
#: What nothing but a layer is asked for; of others an unknown value may be a configuration.
_OF_LAYERS = frozenset(
    """weight bias running_mean running_var in_features out_features num_embeddings embedding_dim
    in_channels out_channels kernel_size stride padding dilation groups""".split()
)
#: How the knowledge begins what MindSpore's layer does not hold, so that it can be set.
_OF_NONE = ("=", UNHELD, UNKNOWN)
#: What MindSpore's convolutions hold otherwise than torch's.
_SIZES = frozenset(
    "kernel_size stride padding dilation padding_mode transposed output_padding".split()
)


class LayerAttributes:
    """`m.weight`, `m.weight = p`, `m.weight *= 2`, `hasattr(m, "bias")`."""

    kinds = (ast.Attribute, ast.Constant, ast.Assign, ast.AugAssign)
    examples = (
        Example(
            "a weight by torch's name",
            """
            norm = nn.BatchNorm2d(3)
            print(norm.weight.shape)
            """,
        ),
        Example(
            "a weight that changes, of a layer that is not known",
            """
            def init(m):
                with torch.no_grad():
                    m.weight *= 2


            nn.Sequential(nn.Embedding(4, 2), nn.BatchNorm1d(2)).apply(init)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a name that both have",
            """
            layer = nn.Linear(2, 3)
            print(layer.bias.shape)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's name, or a function that finds it where the layer is not known."""
        if file.settings.layers.every:
            return False
        if isinstance(node, ast.Constant):
            return _asked_by_text(node, file)
        if isinstance(node, ast.Assign):
            return _assigned(node, file)
        if isinstance(node, ast.AugAssign):
            return _changed(node, file)
        assert isinstance(node, ast.Attribute)
        if not isinstance(node.ctx, ast.Load):
            return False
        name = _renamed(node, file)
        if name is None:
            return False
        if name.startswith("="):
            file.layer_names[node] = f'getattr({{}}, "{node.attr}", {name[2:]})'
            layout.write(file, node, file.layer_names[node].format(file.source(node.value)))
        elif name:
            file.layer_names[node] = f"{{}}.{name}"
        else:
            finder = _finder(node.attr, file)
            file.layer_names[node] = f'{finder}({{}}, "{node.attr}")'
            layout.write(file, node, file.layer_names[node].format(file.source(node.value)))
        return False


def _finder(name: str, file: FileEdit) -> str:
    """The runtime's function that reads an attribute of a layer by torch's name."""
    return file.name(f"composites.layer_{'size' if name in _SIZES else 'attribute'}")


def _renamed(node: ast.Attribute, file: FileEdit) -> str | None:
    """The name of MindSpore's layer, written in place of torch's.

    Empty where the run has to find it; None where the attribute stays.
    """
    name = _name(node.value, node.attr, node, file)
    if name == node.attr or name is None:
        return None
    file.uses += 1
    if name in (UNHELD, UNKNOWN):
        _report(node, node.attr, file)
        return None
    file.converted += 1
    if name and not name.startswith("="):
        end = file.text.span(node)[1]
        file.text.replace(end - len(node.attr), end, name)
    return name


def _report(node: ast.AST, name: str, file: FileEdit) -> None:
    message = f"the layer of the port may not hold what torch's has as {name}"
    file.finding(node, "not-converted", message)


def _assigned(node: ast.Assign, file: FileEdit) -> bool:
    """`m.weight = p`."""
    for target in node.targets:
        if not isinstance(target, ast.Attribute):
            continue
        if _renamed(target, file) == "" and len(node.targets) == 1:
            module = file.source(target.value)
            finder = f'{file.name("composites.native_name")}({module}, "{target.attr}")'
            code = f"setattr({module}, {finder}, {file.argument(node.value)})"
            layout.write_statement(file, node, code)
            return True
    return False


def _changed(node: ast.AugAssign, file: FileEdit) -> bool:
    """`m.weight *= 2`: a tensor is written to, as in torch, and a number is set."""
    target, sign = node.target, SIGNS.get(type(node.op))
    if not isinstance(target, ast.Attribute) or sign is None:
        return False
    if _renamed(target, file) != "":
        return False
    given = f'{file.source(target.value)}, "{target.attr}"'
    held = f"{_finder(target.attr, file)}({given})"
    value = f'"{sign}", {held}, {file.argument(node.value)}'
    code = f"{file.name('composites.augmented')}({value})"
    layout.write_statement(file, node, f"{file.name('composites.set_buffer')}({given}, {code})")
    return True


def _asked_by_text(node: ast.Constant, file: FileEdit) -> bool:
    """The text in `hasattr(m, "weight")`."""
    call = file.tree.parents.get(node)
    if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in _ASKS:
        return False
    if call.args[1:2] != [node] or node.value not in file.settings.layer_attributes:
        return False
    held = file.layers_held(call.args[0])
    is_read = getattr(call.func, "id", "") in ("getattr", "hasattr")
    name = _of_classes(held, node.value, file, is_read=is_read) if held else ""
    followed = _followed(call.args[0], node.value, file, is_read=is_read)
    if followed and not (held and followed <= {name}):
        name = followed.pop() if not held and len(followed) == 1 else ""
    if getattr(call.args[0], "id", "") in ("self", "cls"):
        name = _of_own_class(call, node.value, file, is_read=is_read)
        if not name:
            return False
    elif not (held or name) and not (_is_renamed(node.value, file) and node.value in _OF_LAYERS):
        return False
    if name == node.value:
        return False
    file.uses += 1
    if name in (UNHELD, UNKNOWN) and getattr(call.func, "id", "") != "hasattr":
        _report(node, node.value, file)
        return False
    file.converted += 1
    if name and name.startswith(_OF_NONE):
        _write_known(call, name[2:], file)
    elif name:
        file.replace(node, f'"{name}"')
    else:
        finder = file.name("composites.native_name")
        file.replace(node, f'{finder}({file.source(call.args[0])}, "{node.value}")')
    return True


def _of_own_class(call: ast.Call, name: str, file: FileEdit, *, is_read: bool) -> str | None:
    """The name of what `getattr(self, name)` asks of a class that derives from a layer."""
    around = file.tree.owner(call)
    info = None if around is None else file.class_info(around)
    api = "" if info is None else _native_base(info, file)
    return _of_classes(frozenset((api,)), name, file, is_read=is_read) if api else None


def _write_known(call: ast.Call, value: str, file: FileEdit) -> None:
    """What asks for an attribute that torch's layer has in any case, and MindSpore's never has."""
    if getattr(call.func, "id", "") == "hasattr":
        file.replace(call, "True")
    else:
        file.replace(
            call, f"getattr({file.source(call.args[0])}, {file.source(call.args[1])}, {value})"
        )


def _name(owner: ast.expr, name: str, node: ast.Attribute, file: FileEdit) -> str | None:
    """MindSpore's name of an attribute; empty where only a look at the object shows it.

    None where it is nothing of a layer of MindSpore's.
    """
    found = _shown(owner, name, node, file)
    if not found or found.startswith("="):
        return found
    followed = _followed(owner, name, file, is_read=isinstance(node.ctx, ast.Load))
    if not followed and _is_of_first_call(owner, file) and not file.layers_held(owner):
        return ""
    return found if followed <= {found} else ""  # another class is brought, by an argument


def _is_of_first_call(owner: ast.expr, file: FileEdit) -> bool:
    """Whether a value is a parameter or a function's result: of all calls the scan follows one."""
    if not isinstance(owner, ast.Name) or file.carrying.is_self(owner):
        return False
    scope = scope_of(owner, file)
    bound = scope.statements_of(owner.id, owner)
    values = [getattr(one, "value", None) for one in bound]
    if any(isinstance(one, ast.Call) and not file.api_of_call(one) for one in values):
        return True
    given = scope.parameters.get(owner.id)
    if bound or given is None or given.annotation is not None:
        return False
    asked = (one for one in scope.nodes if isinstance(one, ast.Call) and len(one.args) == 2)
    return not any(
        getattr(one.func, "id", "") == "isinstance"
        and getattr(one.args[0], "id", "") == owner.id
        and any(file.use(part) is not None for part in ast.walk(one.args[1]))
        for one in asked
    )


def _shown(owner: ast.expr, name: str, node: ast.Attribute, file: FileEdit) -> str | None:
    """As `_name`, by what the class around it or the value shows."""
    if name not in file.settings.layer_attributes:
        return None
    held = file.layers_held(owner)
    is_read = isinstance(node.ctx, ast.Load)
    if held:
        return _of_classes(held, name, file, is_read=is_read)
    found = file.facts.layer_owners.get(place(node))
    if isinstance(found, Instance) and (api := _native_base(found.of, file)):
        return _of_classes(frozenset((api,)), name, file, is_read=is_read)
    if isinstance(found, Made) and _has(found.api, name, file) and isinstance(owner, ast.Call):
        own = _of_classes(frozenset((found.api,)), name, file, is_read=is_read)
        is_of_all = own is not None and own.startswith(_OF_NONE)
        return own if is_of_all else ""  # its arguments may take the runtime's class
    if isinstance(found, Made) and _has(found.api, name, file):
        return _of_classes(frozenset((found.api,)), name, file, is_read=is_read)
    is_module = isinstance(found, Made) and (found == ANY_MODULE or _has(found.api, name, file))
    if isinstance(found, Instance) and "__getattr__" in found.of.methods:
        is_module = name not in found.of.attributes  # it may be of what the instance holds
    if not is_module and (found is not None or place(node) not in file.facts.layer_owners):
        return None
    is_asked = name in _OF_LAYERS or is_module
    if not is_asked or not _is_renamed(name, file):
        return None
    return _of_holdings(owner, name, file, is_read=is_read)


def _of_holdings(owner: ast.expr, name: str, file: FileEdit, *, is_read: bool) -> str:
    """The one name for what the project puts there; empty where anything else may be there."""
    found = _followed(owner, name, file, is_read=is_read)
    return found.pop() if len(found) == 1 else ""


def _followed(owner: ast.expr, name: str, file: FileEdit, *, is_read: bool) -> set[str]:
    """The names for what the project puts there; none where anything else may be there."""
    found: set[str] = set()
    for one in file.held(owner) or ():
        known: str | None = ""
        if isinstance(one, Row):
            known = None
        elif isinstance(one, Made) and one != ANY_MODULE and file.entry(one.api) is not None:
            known = _of_classes(frozenset((one.api,)), name, file, is_read=is_read)
        elif isinstance(one, (Instance, Own)):
            known = _of_own(one.of, name, file, is_read=is_read)
        if known is not None:
            found.add(known)
    return found


def _of_own(info: ClassInfo, name: str, file: FileEdit, *, is_read: bool) -> str | None:
    """The name for instances of a class of the project; None: they have no such attribute."""
    api = _native_base(info, file)
    known = _of_classes(frozenset((api,)), name, file, is_read=is_read) if api else None
    if known is not None:
        return known
    classes = [info]
    for one in classes:
        if name in one.attributes or name in one.methods:
            return name
        classes += [b for b in one.bases if isinstance(b, ClassInfo) and b not in classes]
    bases = {base for one in classes for base in one.bases if not isinstance(base, ClassInfo)}
    if bases <= {Api(_MODULE)}:
        return None
    return name if all(isinstance(base, Api) for base in bases) else ""


def _native_base(info: ClassInfo, file: FileEdit) -> str:
    """The layer of torch from which a class derives, if its port derives from MindSpore's."""
    seen: list[ClassInfo] = [info]
    for one in seen:
        for base in one.bases:
            entry = file.entry(base.name) if isinstance(base, Api) else None
            if entry is not None and entry.base and not file.is_shaped(entry.api):
                return "" if "train" in one.methods else entry.api
            if isinstance(base, ClassInfo) and base not in seen:
                seen.append(base)
    return ""


def _has(api: str, name: str, file: FileEdit) -> bool:
    entry = file.entry(api)
    return entry is not None and name in dict(entry.attributes)


def _of_classes(
    apis: frozenset[str], name: str, file: FileEdit, *, is_read: bool = True
) -> str | None:
    """The one name that instances of these classes have for it; None: torch's, of the runtime's.

    is_read: whether it is read there, and neither set nor deleted.
    """
    found: set[str] = set()
    for api in apis:
        entry = file.entry(api)
        names = {} if entry is None else dict(entry.attributes)
        if names.get(name) == UNKNOWN and is_read:
            found.add(UNKNOWN)
            continue
        if entry is None or file.is_shaped(entry.api) or not (entry.factory or names):
            found.add(name)  # the runtime's class, or nothing that is known to be otherwise
            continue
        if not names:
            continue  # whose instances have no such attribute on either side
        own = names.get(name, "" if entry.factory else name)
        found.add(name if own.startswith(_OF_NONE) and not is_read else own)
        if api in file.settings.layers.derived and not entry.base and not is_read:
            found.add(name)  # the runtime's class, which answers to MindSpore's names as well
    if not found:
        return None
    return found.pop() if len(found) == 1 else ""


def _is_renamed(name: str, file: FileEdit) -> bool:
    """Whether any layer that the project uses has another name for an attribute, or none."""
    return any(one == name for one, _ in _other_names(file))


def renamed_attributes(file: FileEdit) -> set[str]:
    """The attributes for which any layer that the project uses has another name."""
    return {name for name, own in _other_names(file) if own}


def _other_names(file: FileEdit) -> Iterator[tuple[str, str]]:
    """Attributes of torch's layers with MindSpore's other names; empty for those without one."""
    for api in file.settings.layers.used:
        entry = file.entry(api) if file.names.kind(api) == "M" else None
        if entry is not None and not file.is_shaped(entry.api):
            for name, own in entry.attributes:
                if own != name and not own.startswith(_OF_NONE):
                    yield name, own
