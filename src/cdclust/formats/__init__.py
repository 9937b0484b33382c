"""The layouts in which the sorted images are taken away, and what each writes beside the images.

Which image goes where is decided here; files are copied, linked and written by `jobs/apply.py`.
"""

from cdclust.formats.layouts import LAYOUTS, Layout
from cdclust.formats.plan import Line, Placed, Sorted, folder_names, read_lines

__all__ = ["LAYOUTS", "Layout", "Line", "Placed", "Sorted", "folder_names", "read_lines"]
