"""Images in files: ``torchvision.io``."""

from runnel.core.namespaces import namespace

_NAMES = """
ImageReadMode decode_image decode_jpeg decode_png encode_jpeg encode_png read_file read_image write_file write_jpeg
write_png
"""
PLACED = {name: f"{__name__}.image:{name}" for name in _NAMES.split()} | {"image": f"{__name__}.image"}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
