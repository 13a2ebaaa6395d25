"""Discrete Fourier transforms (Array API, "Fourier transform functions")."""

from runnel.core.namespaces import namespace

NAMES = {
    "fft": "runnel.ops.library.fourier:fft",
    "fft2": "runnel.ops.library.fourier:fft2",
    "fftfreq": "runnel.tensor.windows:fftfreq",
    "fftn": "runnel.ops.library.fourier:fftn",
    "fftshift": "runnel.ops.library.fourier:fftshift",
    "hfft": "runnel.ops.library.fourier:hfft",
    "hfft2": "runnel.ops.library.fourier:hfft2",
    "hfftn": "runnel.ops.library.fourier:hfftn",
    "ifft": "runnel.ops.library.fourier:ifft",
    "ifft2": "runnel.ops.library.fourier:ifft2",
    "ifftn": "runnel.ops.library.fourier:ifftn",
    "ifftshift": "runnel.ops.library.fourier:ifftshift",
    "ihfft": "runnel.ops.library.fourier:ihfft",
    "ihfft2": "runnel.ops.library.fourier:ihfft2",
    "ihfftn": "runnel.ops.library.fourier:ihfftn",
    "irfft": "runnel.ops.library.fourier:irfft",
    "irfft2": "runnel.ops.library.fourier:irfft2",
    "irfftn": "runnel.ops.library.fourier:irfftn",
    "rfft": "runnel.ops.library.fourier:rfft",
    "rfft2": "runnel.ops.library.fourier:rfft2",
    "rfftfreq": "runnel.tensor.windows:rfftfreq",
    "rfftn": "runnel.ops.library.fourier:rfftn",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
