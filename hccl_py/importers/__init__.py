"""Foreign programs: the contract of importers, and the importers that are installed.

from hccl_py.importers import ImportOptions, SourceCall, importer_of

source = importer_of("ring.xml").open("ring.xml", ImportOptions(size=1 << 20))
imported = source.imported(SourceCall(source.usual_size))
imported.report().ok
"""

from hccl_py.importers.contract import (
    Importer,
    ImportOptions,
    Source,
    SourceCall,
    SourceEntry,
    SourceError,
    WriterOptions,
)
from hccl_py.importers.exporter import Exporter
from hccl_py.importers.imported import Imported, ProgramCase
from hccl_py.importers.installed import importer_of, installed_importers

__all__ = [
    "Exporter",
    "ImportOptions",
    "Imported",
    "Importer",
    "ProgramCase",
    "Source",
    "SourceCall",
    "SourceEntry",
    "SourceError",
    "WriterOptions",
    "importer_of",
    "installed_importers",
]
