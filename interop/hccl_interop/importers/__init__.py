"""The importers and exporters of the package, for the entry points of hccl_py.

Every command that takes a path loads these modules, so they import the modules that read and build
inside their methods.
"""

from hccl_interop.importers.chakra_traces import ChakraImporter
from hccl_interop.importers.checker_logs import LogImporter
from hccl_interop.importers.cpp_folders import CppImporter
from hccl_interop.importers.cpp_projects import CppExporter
from hccl_interop.importers.msccl_files import MscclImporter
from hccl_interop.importers.mscclpp_plans import MscclppImporter

__all__ = ["EXPORTERS", "IMPORTERS"]

IMPORTERS = (MscclImporter, MscclppImporter, ChakraImporter, CppImporter, LogImporter)
EXPORTERS = (CppExporter,)
