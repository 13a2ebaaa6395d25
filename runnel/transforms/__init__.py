"""Functions on functions: gradients of any order, and functions with a derivative of their own."""

from runnel.transforms.custom import custom_vjp
from runnel.transforms.gradients import grad, value_and_grad, vjp

__all__ = ["custom_vjp", "grad", "value_and_grad", "vjp"]
