"""MSCCL XML files in and out: algorithms of Microsoft's MSCCL and AMD's RCCL as programs.

from hccl_interop.msccl import import_algorithm, meaning_of, read_algorithms, to_xml

algorithm, = read_algorithms("ring.xml")
imported = import_algorithm(algorithm, meaning_of(algorithm), size=1 << 20)
imported.report().ok
to_xml(imported.program)
"""

from hccl_interop.common.meaning import Meaning, meaning_of
from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.export import to_xml
from hccl_interop.msccl.imported import import_algorithm
from hccl_interop.msccl.xml_text import MSCCL, algorithms_from, read_algorithms

__all__ = [
    "MSCCL",
    "Meaning",
    "XmlAlgorithm",
    "algorithms_from",
    "import_algorithm",
    "meaning_of",
    "read_algorithms",
    "to_xml",
]
