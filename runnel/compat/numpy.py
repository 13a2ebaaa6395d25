"""NumPy's names: the names of ``runnel`` and ``runnel.special``, and the names of NumPy that they lack.

The table has rows ``module: name name ...``, with ``name=function`` if the module calls it otherwise.
"""

from runnel.core.namespaces import namespace

PLACES = """
runnel.compat.functions.editing: append compress delete extract insert intersect1d rollaxis setdiff1d setxor1d union1d
runnel.compat.functions.skipping_nan: average nanargmax nanargmin nancumprod nancumsum nanmax nanmin nanpercentile
    nanprod nanstd nanvar percentile ptp
runnel.compat.functions.slopes: gradient
runnel.core.dtype_info: promote_types=result_type
runnel.ops.elementwise.arithmetic: absolute=abs fix=trunc true_divide=divide
runnel.ops.elementwise.by_numpy: frexp gcd lcm
runnel.ops.elementwise.circular: arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan2=atan2 arctan=atan
    arctanh=atanh
runnel.ops.elementwise.comparison: bitwise_not=bitwise_invert invert=bitwise_invert
runnel.ops.elementwise.exponential: power=pow
runnel.ops.elementwise.numbers: angle array_equal deg2rad degrees=rad2deg exp2 float_power fmax fmin fmod heaviside
    isneginf isposinf isreal ldexp logaddexp2 rad2deg radians=deg2rad sinc
runnel.ops.indexing.assignment: put
runnel.ops.indexing.positions: unravel_index
runnel.ops.linear_algebra.products: corrcoef cov inner nanmean nansum vdot
runnel.ops.reductions.cumulative: trapezoid
runnel.ops.reductions.primitives: amax=max amin=min
runnel.ops.shapes.diagonals: diagflat fill_diagonal vander
runnel.ops.shapes.joining: array_split=tensor_split atleast_2d atleast_3d column_stack dsplit dstack fliplr flipud
    hsplit rot90 row_stack=vstack vsplit
runnel.ops.shapes.padding: pad
runnel.ops.shapes.pieces: concatenate=concat
runnel.ops.sorting.histograms: histogram histogram2d histogramdd
runnel.ops.sorting.order: nanmedian nanquantile
runnel.ops.sorting.sets: argwhere flatnonzero
runnel.special.bessel: i0
runnel.special.sequences: convolve correlate interp polyadd polyder polyfit polyint polymul polysub polyval roots
    unwrap
runnel.tensor.creation: array=tensor
"""
NAMES = dict(
    sorted(
        (name, f"{row.partition(':')[0]}:{function or name}")
        for row in PLACES.strip().replace("\n    ", " ").splitlines()
        for name, _, function in (each.partition("=") for each in row.partition(": ")[2].split())
    )
)

__all__, __getattr__, __dir__ = namespace(__name__, NAMES, forwards=("runnel", "runnel.special"))
del __all__  # includes the names of runnel, so it is computed on request
