"""Operands that wait while another part of their statement changes them: `x + x.add_(1)`.

In torch both sides are the changed tensor.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.origins import Reach, origin_of_write
from isograd.convert.passes.chains import beside, changed_by, names_in

SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
#: Expressions that evaluate all their parts, each once, before they have a value themselves.
_EVALUATED_ONCE = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Call,
    ast.keyword,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Subscript,
    ast.Attribute,
    ast.Starred,
)
_WRITING = frozenset(("inplace", "out"))


def reads_before(
    target: ast.Name, node: ast.Call, statement: ast.stmt, file: FileEdit
) -> list[ast.Name]:
    """Where a statement reads a name before a call in it that changes what the name holds."""
    start = file.text.span(node)[0]
    return [
        part
        for part in names_in(statement, target.id)
        if isinstance(part.ctx, ast.Load) or _is_added_to(part, statement)
        if file.text.span(part)[0] < start
    ]


def _is_added_to(part: ast.Name, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AugAssign) and statement.target is part


def waiting(target: ast.Name, node: ast.Call, file: FileEdit) -> list[ast.Name]:
    """The reads before a call whose tensor is used behind it only."""
    around, other = set(file.tree.above(node)), beside(node, file)
    before = reads_before(target, node, file.tree.statement(node), file)
    return [
        part for part in before if part not in other and not _is_used_before(part, around, file)
    ]


def _is_used_before(part: ast.Name, around: set[ast.AST], file: FileEdit) -> bool:
    """Whether something new is made of a tensor by itself: `x * 2` of `x * 2 + x.add_(1)`."""
    for above in file.tree.above(part):
        if above in around:
            return False
        if isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            return True
        if isinstance(above, ast.Call) and file.use(above.func) is not None:
            root, reach = origin_of_write(above, file.views)
            is_new = root is above and reach is Reach.ALONE and changed_by(above, file) is None
            if is_new and not any(given.arg in _WRITING for given in above.keywords):
                return True
    return False


def operand_of(part: ast.expr, around: set[ast.AST], file: FileEdit) -> ast.expr:
    """The expression with a read in it that stands beside a call: `x.view(-1)`."""
    found = part
    for above in file.tree.above(part):
        if above in around:
            break
        if isinstance(above, ast.expr):
            found = above
    return found


def can_move(node: ast.Call, before: list[ast.Name], file: FileEdit) -> bool:
    """Whether a call can be first, as each read before it is the tensor itself or a view."""
    around = set(file.tree.above(node))
    tops = [(part, operand_of(part, around, file)) for part in before]
    return can_be_first(node, [], file) and all(
        origin_of_write(top, file.views)[0] is part for part, top in tops
    )


def lost_views(node: ast.Call, before: list[ast.Name], file: FileEdit) -> list[ast.expr]:
    """Views of a tensor that wait, and do not see what is written into it."""
    around = set(file.tree.above(node))
    tops = [operand_of(part, around, file) for part in before]
    return [top for top in tops if origin_of_write(top, file.views)[1] is Reach.LOST]


def can_be_first(node: ast.Call, before: list[ast.Name], file: FileEdit) -> bool:
    """Whether a call gives the same at the beginning of its statement.

    It has to be evaluated once there, and the tensors that were read before it must not have been
    used before it: of `x + self.block(x)` the sum is taken last.
    """
    below: ast.AST = node
    around: list[ast.AST] = []
    for part in file.tree.above(node):
        around.append(part)
        if isinstance(part, SIMPLE):
            is_value = part.value is below
            return is_value and all(file.tree.parents.get(read) in around for read in before)
        if not isinstance(part, _EVALUATED_ONCE):
            return False
        below = part
    return False


def is_first_effect(node: ast.Call, file: FileEdit) -> bool:
    """Whether nothing that its statement evaluates before a call may change what the call reads."""
    start = file.text.span(node)[0]
    for part in ast.walk(file.tree.statement(node)):
        if not isinstance(part, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)):
            continue
        if file.text.span(part)[1] > start:
            continue
        if not isinstance(part, ast.Call) or file.use(part.func) is None:
            return False
        if changed_by(part, file) is not None:
            return False
        if any(given.arg in _WRITING for given in part.keywords):
            return False
    return True


def indent_of(statement: ast.stmt, file: FileEdit) -> str | None:
    """What stands before a statement on its line; None where that is another statement."""
    first = file.text.span(statement)[0]
    indent = file.text.original[file.text.line_start(statement.lineno) : first]
    return None if indent.strip() else indent


def bind_first(name: str, code: str, node: ast.Call, file: FileEdit) -> bool:
    """Bind a name in a line of its own before the statement that reads it; False: it cannot be."""
    statement = file.tree.statement(node)
    indent = indent_of(statement, file)
    if indent is None or "\n" in code or not is_first_effect(node, file):
        return False
    file.text.insert(file.text.span(statement)[0], f"{name} = {code}\n{indent}")
    file.replace(node, name)
    return True
