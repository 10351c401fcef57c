"""The importers and exporters of this package, for the entry points of hccl_py."""

from hccl_interop.chakra.importer import ChakraImporter
from hccl_interop.checker_logs.importer import LogImporter
from hccl_interop.cpp.exporter import CppExporter
from hccl_interop.cpp.importer import CppImporter
from hccl_interop.msccl.importer import MscclImporter
from hccl_interop.mscclpp.importer import MscclppImporter

IMPORTERS = (MscclImporter, MscclppImporter, ChakraImporter, CppImporter, LogImporter)
EXPORTERS = (CppExporter,)
