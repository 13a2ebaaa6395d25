"""Discrete Fourier transforms (Array API, "Fourier transform functions")."""

from runnel.core.namespaces import namespace

NAMES = {
    "fft": "runnel.fft.fourier:fft",
    "fft2": "runnel.fft.fourier:fft2",
    "fftfreq": "runnel.tensor.windows:fftfreq",
    "fftn": "runnel.fft.fourier:fftn",
    "fftshift": "runnel.fft.fourier:fftshift",
    "hfft": "runnel.fft.fourier:hfft",
    "hfft2": "runnel.fft.fourier:hfft2",
    "hfftn": "runnel.fft.fourier:hfftn",
    "ifft": "runnel.fft.fourier:ifft",
    "ifft2": "runnel.fft.fourier:ifft2",
    "ifftn": "runnel.fft.fourier:ifftn",
    "ifftshift": "runnel.fft.fourier:ifftshift",
    "ihfft": "runnel.fft.fourier:ihfft",
    "ihfft2": "runnel.fft.fourier:ihfft2",
    "ihfftn": "runnel.fft.fourier:ihfftn",
    "irfft": "runnel.fft.fourier:irfft",
    "irfft2": "runnel.fft.fourier:irfft2",
    "irfftn": "runnel.fft.fourier:irfftn",
    "rfft": "runnel.fft.fourier:rfft",
    "rfft2": "runnel.fft.fourier:rfft2",
    "rfftfreq": "runnel.tensor.windows:rfftfreq",
    "rfftn": "runnel.fft.fourier:rfftn",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
