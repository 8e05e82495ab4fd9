"""Work from a learning platform, and grades on their way to it.

Exporters for ``nbgrader export --exporter=…``, and collectors for ``nbgrader zip_collect --collector=…``.
"""

from .archives import CanvasArchive, MoodleArchive
from .grades import Canvas, CanvasUpload, Moodle

__all__ = ["Canvas", "CanvasArchive", "CanvasUpload", "Moodle", "MoodleArchive"]
