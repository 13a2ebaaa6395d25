"""Tensor expressions and their schedules: a language for loops over elements, compiled to one kernel each."""

from runnel.core.namespaces import namespace

NAMES = {
    "reindex": "runnel.expressions.function:reindex",
    "reindex_reduce": "runnel.expressions.function:reindex_reduce",
    "search_schedule": "runnel.expressions.search:search_schedule",
    "tensor_expr": "runnel.expressions.function:tensor_expr",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
